package dvp

import (
	"testing"

	"blockdesk/httpgw/gatewaytest"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

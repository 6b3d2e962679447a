package service

import (
	"crypto/sha256"
	"fmt"

	"blockdesk/httpgw/admin"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// PlainOperators returns the operators of a service without a desk. No journal has their
// numbers.
func PlainOperators(c *config.Config) ([]admin.Operator, error) {
	list, _, err := makeOperators(c)
	for i := range list {
		list[i].ID = market.OperatorID(i + 1)
	}
	return list, err
}

// makeOperators returns the configured operators, or the local one if none is configured,
// and the demo's operator with its token. It creates the local token if needed.
func makeOperators(c *config.Config) (list []admin.Operator, demoToken string, err error) {
	for i, o := range c.Operators {
		hash, err := o.TokenHash()
		if err != nil {
			return nil, "", fmt.Errorf("operators[%d].token_sha256: %w", i, err)
		}
		list = append(list, admin.Operator{Name: o.Name, TokenSHA256: hash})
	}
	if len(list) == 0 {
		token, err := operator.LocalToken(c.DataDir)
		if err != nil {
			return nil, "", fmt.Errorf("operator %s: %w", config.LocalOperator, err)
		}
		list = append(list, admin.Operator{Name: config.LocalOperator, TokenSHA256: sha256.Sum256([]byte(token))})
	}
	if c.Demo {
		demoToken = operator.NewToken()
		list = append(list, admin.Operator{Name: config.DemoOperator, TokenSHA256: sha256.Sum256([]byte(demoToken))})
	}
	return list, demoToken, nil
}

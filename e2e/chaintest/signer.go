package chaintest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/settle/cosign"
)

// SignerProcess is a running blockdesk signer.
type SignerProcess struct {
	cmd *exec.Cmd
	// Out is what it has printed, Log what it has logged. Both are complete after End.
	Out, Log bytes.Buffer
}

// StartSigner runs the signer and waits until it answers.
func StartSigner(t *testing.T, key, socket string) (*SignerProcess, *cosign.SocketSigner) {
	t.Helper()
	exe := programtest.Binary(t)
	p := &SignerProcess{cmd: exec.Command(exe, "signer", "--key", key, "--socket", socket, "--json")}
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = &p.Out, &p.Log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			t.Logf("killed at the end: %v", errors.Join(p.cmd.Process.Kill(), p.cmd.Wait()))
		}
	})
	var s *cosign.SocketSigner
	var err error
	await.True(t, "the signer", func() bool {
		s, err = cosign.Dial(socket, cosign.SocketOptions{})
		return err == nil
	})
	return p, s
}

// End sends a signal and waits for the end.
func (p *SignerProcess) End(t *testing.T, signal os.Signal) error {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return p.cmd.Wait()
}

package checks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"corpus-git/project"
)

// connect opens a connection and closes it.
func connect(ctx context.Context, network, address string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

// askCertificate makes a TLS connection, which verifies the chain and the name, and checks how long each certificate of the chain is still
// valid.
func askCertificate(ctx context.Context, c project.Check) error {
	cfg, err := tlsConfig(c)
	if err != nil {
		return err
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(c.Target)
	}
	d := tls.Dialer{Config: cfg}
	conn, err := d.DialContext(ctx, "tcp", c.Target)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, cert := range conn.(*tls.Conn).ConnectionState().VerifiedChains[0] {
		if left := time.Until(cert.NotAfter); left < c.MinValid {
			return wrongf("the certificate of %s is valid until %s (%d days), wanted %d days", cert.Subject.CommonName,
				cert.NotAfter.UTC().Format(time.DateOnly), int(left/(24*time.Hour)), int(c.MinValid/(24*time.Hour)))
		}
	}
	return nil
}

// askUnit asks systemd whether a unit is active.
func (r Runner) askUnit(ctx context.Context, c project.Check) ([]byte, error) {
	status, out, err := r.Command(ctx, c, []string{"systemctl", "is-active", "--", c.Target})
	if err != nil {
		return nil, notStarted(err, "systemctl")
	}
	if status == 0 {
		return nil, nil
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return nil, wrongf("%s is %s, wanted active", c.Target, line)
}

// askCommand runs a command line: exit status 0 means success.
func (r Runner) askCommand(ctx context.Context, c project.Check) ([]byte, error) {
	status, out, err := r.Command(ctx, c, nil)
	if err != nil {
		return []byte(out), notStarted(err, "the command")
	}
	if status != 0 {
		return []byte(out), wrongf("exit status %d", status)
	}
	return nil, nil
}

func notStarted(err error, program string) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("run %s: %w", program, err)
}

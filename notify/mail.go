package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"html/template"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/config"
)

// mail makes one attempt to send a notification as a mail with a part in plain text and one in HTML. Its Message-ID is derived from the
// notification's ID, so that receivers recognise duplicates.
func (w *Worker) mail(ctx context.Context, s config.Sink, n project.Notification) error {
	m, err := w.message(ctx, s, n)
	if err != nil {
		return err
	}
	c, err := mailClient(s)
	if err != nil {
		return err
	}
	if err := c.DialAndSendWithContext(ctx, m); err != nil {
		return fmt.Errorf("%s: %w", s.Server, err)
	}
	return nil
}

// mailClient connects to a sink's mail server.
func mailClient(s config.Sink) (*mail.Client, error) {
	host, portText, err := net.SplitHostPort(s.Server)
	if err != nil {
		return nil, permanent{err}
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, permanent{err}
	}
	conf := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		pem, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, err
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", s.CA)
		}
	}
	dial := dialer(s)
	options := []mail.Option{
		mail.WithPort(port), mail.WithTimeout(s.Timeout), mail.WithTLSConfig(conf),
	}
	switch s.TLS {
	case "tls":
		over := &tls.Dialer{NetDialer: dial, Config: conf}
		options = append(options, mail.WithSSL(), mail.WithDialContextFunc(over.DialContext))
	case "none":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS), mail.WithDialContextFunc(dial.DialContext))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory), mail.WithDialContextFunc(dial.DialContext))
	}
	if s.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.User), mail.WithPassword(string(s.Password)))
	}
	return mail.NewClient(host, options...)
}

// message returns the mail of a notification.
func (w *Worker) message(ctx context.Context, s config.Sink, n project.Notification) (*mail.Msg, error) {
	m := mail.NewMsg()
	if err := m.From(s.From); err != nil {
		return nil, permanent{err}
	}
	if err := m.To(receivers(s, n)...); err != nil {
		return nil, permanent{err}
	}
	page := mailPage{Title: title(n), Lines: details(n)}
	if n.Event == project.EventCreated && w.Describe != nil {
		text, err := w.Describe(ctx, n.Project)
		switch {
		case err != nil && fault.KindOf(err) == fault.Refused:
			page.Lines = append(page.Lines, "the project is gone again")
		case err != nil:
			return nil, err
		}
		page.Report = printable.Text(text)
	}
	_, host, _ := strings.Cut(s.From, "@")
	m.SetMessageIDWithValue(n.ID + "@" + strings.TrimSuffix(host, ">"))
	m.SetDateWithValue(n.At)
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834
	m.Subject(page.Title)
	text := strings.Join(append([]string{page.Title, ""}, page.Lines...), "\n")
	if page.Report != "" {
		text += "\n\n" + page.Report
	}
	m.SetBodyString(mail.TypeTextPlain, text+"\n\n-- \ncorpus-git on "+w.Host+"\n")
	page.Host = w.Host
	if err := m.AddAlternativeHTMLTemplate(mailTemplate(), page); err != nil {
		return nil, permanent{err}
	}
	return m, nil
}

// receivers returns the addresses that a notification is sent to: the administrators', and that of the project's creator.
func receivers(s config.Sink, n project.Notification) []string {
	out := slices.Clone(s.To)
	if n.Event != project.EventCreated || n.By == nil {
		return out
	}
	for _, x := range s.Addresses {
		if name, address, _ := strings.Cut(x, "="); name == n.By.Key && !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}

// mailPage is what the HTML part shows.
type mailPage struct {
	Title  string
	Lines  []string
	Report string
	Host   string
}

func mailTemplate() *template.Template {
	return template.Must(template.New("mail").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title></head>
<body style="font-family: sans-serif">
<h1 style="font-size: 1.2em">{{.Title}}</h1>
{{range .Lines}}<p>{{.}}</p>
{{end}}{{if .Report}}<pre>{{.Report}}</pre>
{{end}}<p style="color: #666">corpus-git on {{.Host}}</p>
</body></html>
`))
}

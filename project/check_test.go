package project_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

func checksOf(t *testing.T, text string) ([]project.Check, error) {
	c, err := project.BuildCfg(t.Context(), inputs(t, "makina-projects.x:\n  data: {port: 8080, host: www.example.org}\n", "makina-projects.app:\n  checks:\n"+text))
	if err != nil {
		return nil, err
	}
	return c.Checks(), nil
}

func TestChecks(t *testing.T) {
	all := []project.CheckOccasion{project.OnDeploy, project.OnRollback, project.OnConverge}
	plain := func(name string, kind project.CheckKind, target string) project.Check {
		return project.Check{Name: name, Kind: kind, Target: target, MinValid: 14 * 24 * time.Hour, Attempts: 10, Every: time.Second, Timeout: 5 * time.Second, On: all,
			HTTP: project.HTTPCheck{Method: "GET", Status: []project.StatusRange{{First: 200, Last: 299}}}}
	}
	got, err := checksOf(t, `
    home: {http: "http://127.0.0.1:{port}/"}
    db: {tcp: "127.0.0.1:5432", attempts: 1, on: deploy}
    sock: {unix: /run/app.sock, on: [rollback, every: 1m]}
    job: {command: ./manage.py check, user: www-data, timeout: 90}
    svc: {unit: app@1.service, start_after: 500ms, every: 0.5, also_after: 30s}
    cert: {certificate: "{host}", days: 30}
    full:
      http: https://example.org/api
      method: POST
      body: '{}'
      headers: {x-key: 5, Accept: application/json}
      status: [200, 3xx, 400-404]
      contains: ok
      json: {db.state: up, "items[0].n": 1, ready: true, none: null}
      resolve: 127.0.0.1:8443
      tls_name: www.example.org
      ca: /etc/ca.pem
      follow: true
`)
	require.NoError(t, err)
	db := plain("db", project.CheckTCP, "127.0.0.1:5432")
	db.Attempts, db.On = 1, []project.CheckOccasion{project.OnDeploy}
	sock := plain("sock", project.CheckUnix, "/run/app.sock")
	sock.On, sock.Interval = []project.CheckOccasion{project.OnRollback}, time.Minute
	job := plain("job", project.CheckCommand, "./manage.py check")
	job.User, job.Timeout = "www-data", 90*time.Second
	svc := plain("svc", project.CheckUnit, "app@1.service")
	svc.StartAfter, svc.Every, svc.AlsoAfter = 500*time.Millisecond, 500*time.Millisecond, 30*time.Second
	cert := plain("cert", project.CheckCertificate, "www.example.org:443")
	cert.MinValid = 30 * 24 * time.Hour
	full := plain("full", project.CheckHTTP, "https://example.org/api")
	full.TLSName, full.CA = "www.example.org", "/etc/ca.pem"
	full.HTTP = project.HTTPCheck{Method: "POST", Body: "{}", Headers: []project.Header{{Name: "X-Key", Value: "5"}, {Name: "Accept", Value: "application/json"}},
		Status:   []project.StatusRange{{First: 200, Last: 200}, {First: 300, Last: 399}, {First: 400, Last: 404}},
		Contains: "ok", JSON: []project.JSONValue{{Path: "db.state", Value: `"up"`}, {Path: "items[0].n", Value: "1"}, {Path: "ready", Value: "true"}, {Path: "none", Value: "null"}},
		Resolve: "127.0.0.1:8443", Follow: true}
	require.Equal(t, []project.Check{plain("home", project.CheckHTTP, "http://127.0.0.1:8080/"), db, sock, job, svc, cert, full}, got)
}

func TestChecksThatAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"    [a]":                                             "checks: must be a mapping of names, not list",
		"    a: b":                                            "checks:a: must be a mapping",
		"    'a b': {tcp: 'h:1'}":                             "checks:a b: a name has at most 64 of A-Z a-z 0-9 . _ -",
		"    a: {timeout: 5}":                                 "checks:a: must have one of http, tcp, unix, command, unit, certificate",
		"    a: {tcp: 'h:1', unix: /s}":                       "checks:a: must have one of http, tcp, unix, command, unit, certificate",
		"    a: {tcp: 'h'}":                                   "checks:a:tcp: must be HOST:PORT",
		"    a: {tcp: 'h:0'}":                                 "checks:a:tcp: must be HOST:PORT",
		"    a: {http: 'ftp://h/'}":                           "checks:a:http: must be an address such as http://127.0.0.1:8080/health; a user and password go into headers",
		"    a: {http: 'http://u:p@h/'}":                      "checks:a:http: must be an address such as http://127.0.0.1:8080/health; a user and password go into headers",
		"    a: {unix: s}":                                    "checks:a:unix: must be an absolute path of at most 107 bytes",
		"    a: {unit: --all}":                                "checks:a:unit: must be the name of a systemd unit, such as app.service",
		"    a: {unit: " + strings.Repeat("a", 256) + "}":     "checks:a:unit: must be the name of a systemd unit, such as app.service",
		"    a: {command: 5}":                                 "checks:a:command: must be a text",
		"    a: {tcp: 'h:1', contains: x}":                    "checks:a:contains: unknown key; a check of kind tcp takes also_after, attempts, every, on, start_after, tcp, timeout",
		"    a: {tcp: 'h:1', attempts: 0}":                    "checks:a:attempts: must be an integer from 1 to 1000",
		"    a: {tcp: 'h:1', timeout: 0}":                     "checks:a:timeout: must be a duration such as 500ms, 5s or 2m, at most 1d",
		"    a: {tcp: 'h:1', every: x}":                       "checks:a:every: must be a duration such as 500ms, 5s or 2m, at most 1d",
		"    a: {tcp: 'h:1', on: [x]}":                        "checks:a:on: must be a list of deploy, rollback, converge and  every: DURATION",
		"    a: {tcp: 'h:1', on: {every: 0.5}}":               "checks:a:on: every must be a duration of at least 1s",
		"    a: {http: 'http://h/', status: 99}":              "checks:a:status: must be a status such as 200, 2xx or 200-204, or a list of them",
		"    a: {http: 'http://h/', status: []}":              "checks:a:status: must name a status",
		"    a: {http: 'http://h/', headers: {'a b': c}}":     "checks:a:headers: must be a mapping of header names and texts",
		"    a: {http: 'http://h/', headers: {a: \"b\\nc\"}}": "checks:a:headers: must be a mapping of header names and texts",
		"    a: {http: 'http://h/', json: {a..b: 1}}":         "checks:a:json: a path is names and [numbers], such as db.state or items[0].name",
		"    a: {http: 'http://h/', json: {a: [1]}}":          "checks:a:json: the value of a path must be a text, a number, true, false or null",
		"    a: {http: 'http://h/', socket: /s, resolve: h}":  "checks:a: socket and resolve exclude each other",
		"    a: {http: 'http://h/', method: 'G T'}":           "checks:a: method must be one such as GET or POST",
		"    a: {command: x, user: '0; rm'}":                  "checks:a: user must be the name of an account",
		"    a: {tcp: 'h:1', attempts: 1000, timeout: 1h}":    "checks:a: all attempts together take more than 1d",
		"    a: {http: 'http://h/', tcp_: 1}":                 "checks:a:tcp_: unknown key; a check of kind http takes also_after, attempts, body, ca, contains, every, follow, headers, http, json, method, on, resolve, socket, start_after, status, timeout, tls_name",
	} {
		_, err := checksOf(t, text)
		var e *project.KeyError
		if !assertAs(t, err, &e, text) {
			continue
		}
		require.Equal(t, says, e.Error(), text)
	}
}

func assertAs(t *testing.T, err error, target **project.KeyError, text string) bool {
	t.Helper()
	require.Error(t, err, text)
	require.ErrorAs(t, err, target, text)
	return true
}

func TestChecksThatALaterLayerTakesAway(t *testing.T) {
	c, err := project.BuildCfg(t.Context(), inputs(t, "makina-projects.x:\n  checks: {a: {tcp: 'h:1'}, b: {tcp: 'h:2', attempts: 3}}\n", "makina-projects.app:\n  checks: {a: null, b: {attempts: null}}\n"))
	require.NoError(t, err)
	require.Len(t, c.Checks(), 1)
	require.Equal(t, 10, c.Checks()[0].Attempts)
}

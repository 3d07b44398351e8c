package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/fault"
)

// migration1 creates the table of responses. answer is NULL while the request runs, and stays so if the server died during it.
const migration1 = `CREATE TABLE web_answers (id TEXT PRIMARY KEY, request TEXT NOT NULL, at INTEGER NOT NULL, status INTEGER, header TEXT, body BLOB)`

const (
	// keepAnswers is how long responses are kept, maxAnswers how many.
	keepAnswers = 24 * time.Hour
	maxAnswers  = 10000
	// maxIdempotencyKey is the maximum length of a key.
	maxIdempotencyKey = 255
)

// inFlight contains the keys of running requests.
type inFlight struct {
	mu  sync.Mutex
	ids map[string]bool
}

// begin marks id as running; it reports false if it already is.
func (f *inFlight) begin(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids[id] {
		return false
	}
	if f.ids == nil {
		f.ids = map[string]bool{}
	}
	f.ids[id] = true
	return true
}

func (f *inFlight) end(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.ids, id)
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = io.WriteString(h, p+"\x00")
	}
	return hex.EncodeToString(h.Sum(nil))
}

// once runs a request with an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) the first time, and later repeats its response.
func (a *API) once(w http.ResponseWriter, r *http.Request, key string) {
	refuse := func(status int, kind fault.Kind, detail string) {
		WriteProblem(w, Problem{Status: status, Detail: detail, Kind: kind.String(), Exit: kind.ExitCode()})
	}
	if len(key) > maxIdempotencyKey {
		refuse(http.StatusBadRequest, fault.Usage, "an Idempotency-Key has 255 bytes at most")
		return
	}
	if strings.HasSuffix(r.URL.Path, "/tokens") {
		refuse(http.StatusBadRequest, fault.Usage, "a token's secret is stored nowhere, so this answer cannot be given again: leave Idempotency-Key away (a token's name is good once)")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(http.StatusRequestEntityTooLarge, fault.Usage, "the request cannot be read: "+err.Error())
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	id := digest(credential(identity(r.Context())), key)
	request := digest(r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("If-Match"), string(body))
	if !a.keys.begin(id) {
		w.Header().Set("Retry-After", "1")
		refuse(http.StatusConflict, fault.Busy, "the request with this Idempotency-Key still runs")
		return
	}
	defer a.keys.end(id)
	ctx := context.WithoutCancel(r.Context())
	known, out, err := a.remembered(ctx, id, request)
	switch {
	case err != nil:
		a.Log.Error().Err(err).Msg("idempotency key")
		refuse(http.StatusInternalServerError, fault.Internal, "internal server error; see the server's log")
	case known == otherRequest:
		refuse(http.StatusUnprocessableEntity, fault.Usage, "another request had this Idempotency-Key")
	case known == cutOff:
		refuse(http.StatusConflict, fault.Failed, "the server stopped while it ran the request with this Idempotency-Key: look whether it was done, then use another key")
	case known == answered:
		out.Headers.Set("Idempotency-Replayed", "true")
		out.send(w)
	default:
		out := NewAnswer()
		a.apply(out, r)
		if err := a.remember(ctx, id, out); err != nil {
			a.Log.Error().Err(err).Msg("idempotency key")
		}
		out.send(w)
	}
}

// recall is the stored state of a key.
type recall int

const (
	unknownKey recall = iota
	otherRequest
	cutOff
	answered
)

// remembered looks up a key; a new one is recorded as running.
func (a *API) remembered(ctx context.Context, id, request string) (recall, *Answer, error) {
	now := a.Now()
	_, err := a.DB.ExecContext(ctx, `DELETE FROM web_answers WHERE at < ?1 OR rowid <= (SELECT rowid FROM web_answers ORDER BY rowid DESC LIMIT 1 OFFSET ?2)`, now.Add(-keepAnswers).Unix(), maxAnswers)
	if err != nil {
		return unknownKey, nil, err
	}
	var had, header sql.NullString
	var status sql.NullInt64
	var body []byte
	err = a.DB.QueryRowContext(ctx, `SELECT request, status, header, body FROM web_answers WHERE id = ?`, id).Scan(&had, &status, &header, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = a.DB.ExecContext(ctx, `INSERT INTO web_answers(id, request, at) VALUES(?, ?, ?)`, id, request, now.Unix())
		return unknownKey, nil, err
	case err != nil:
		return unknownKey, nil, err
	case had.String != request:
		return otherRequest, nil, nil
	case !status.Valid:
		return cutOff, nil, nil
	}
	out := &Answer{Headers: http.Header{}, Status: int(status.Int64)}
	_, _ = out.Body.Write(body)
	return answered, out, json.Unmarshal([]byte(header.String), &out.Headers)
}

// remember stores a response, except one that asks the client to try again.
func (a *API) remember(ctx context.Context, id string, out *Answer) error {
	if out.Status == http.StatusServiceUnavailable || out.Status == http.StatusTooManyRequests {
		_, err := a.DB.ExecContext(ctx, `DELETE FROM web_answers WHERE id = ?`, id)
		return err
	}
	header, err := json.Marshal(out.Headers)
	if err != nil {
		return err
	}
	_, err = a.DB.ExecContext(ctx, `UPDATE web_answers SET status = ?, header = ?, body = ? WHERE id = ?`, out.Status, header, out.Body.Bytes(), id)
	return err
}

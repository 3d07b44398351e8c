package access

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Entry is a user of a directory.
type Entry struct {
	DN, Name, Email string
	// Keys are public keys, in the format of authorized_keys.
	Keys []string
	// Groups are the DNs of the groups that the user is in, including the groups that contain these.
	Groups []string
}

// Directory is a directory of users; *directory.Directory is one. An error is fault.Busy if it did not answer.
type Directory interface {
	// Lookup finds a user by name; ok is false if there is none.
	Lookup(ctx context.Context, name string) (e Entry, ok bool, err error)
	// Authenticate is Lookup with the user's password; an empty one is always wrong.
	Authenticate(ctx context.Context, name, password string) (e Entry, ok bool, err error)
}

// GroupRight is the permission that a group of a directory gives its members.
type GroupRight struct {
	Right project.Right `json:"right"`
	// Project is "" for all; admin on all is an administrator.
	Project project.Name `json:"project,omitempty"`
}

// DirectoryPolicy says what a directory's answers mean, and how long they are valid.
type DirectoryPolicy struct {
	// Rights returns the permissions of groups, by their DNs.
	Rights func(groups []string) []GroupRight
	// TTL is how long an answer is valid, Grace how long it is valid while the directory does not answer.
	TTL, Grace time.Duration
	// Failed is called when a directory does not answer; it may be nil.
	Failed func(err error)
}

// known is a directory's answer about a principal.
type known struct {
	dn      string
	keys    []string // each a fingerprint, |, and the key in base64
	rights  []GroupRight
	gone    bool
	fetched time.Time
}

// key returns the key with a fingerprint; ok is false if there is none.
func (k known) key(fingerprint string) (key ssh.PublicKey, ok bool) {
	for _, word := range k.keys {
		if text, is := strings.CutPrefix(word, fingerprint+"|"); is {
			blob, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return nil, false
			}
			key, err = ssh.ParsePublicKey(blob)
			return key, err == nil
		}
	}
	return nil, false
}

func (k known) admin() bool {
	return slices.Contains(k.rights, GroupRight{Right: project.Admin})
}

// asks is the state of a Store's queries to its directory.
type asks struct {
	mu     sync.Mutex
	dir    Directory
	policy DirectoryPolicy
	// busy has a channel for each name that is being queried, closed when done.
	busy map[string]chan struct{}
	// absent are names that the directory does not have, and until when that is cached.
	absent map[string]time.Time
	// down is until when a directory that did not answer is not queried again.
	down    time.Time
	downErr error
	// wrong are the wrong passwords of a name, and since when.
	wrong map[string]guesses
}

type guesses struct {
	n     int
	since time.Time
}

const (
	// absentFor and downFor are how long a missing user and an unreachable directory are cached.
	absentFor = 30 * time.Second
	downFor   = 5 * time.Second
	// strangerEvery is how often unknown keys cause a query about one user.
	strangerEvery = 10 * time.Second
	// maxGuesses is the number of wrong passwords that are accepted for one name from one address within guessWindow.
	maxGuesses  = 10
	guessWindow = 15 * time.Minute
	// maxNames limits the number of names from strangers that are kept.
	maxNames = 10_000
)

// SetDirectory sets the directory of users in addition to those in the database; with nil its users may not log in.
func (s *Store) SetDirectory(d Directory, p DirectoryPolicy) {
	s.asks.mu.Lock()
	defer s.asks.mu.Unlock()
	s.asks.dir, s.asks.policy = d, p
	s.asks.busy, s.asks.absent, s.asks.wrong, s.asks.down = map[string]chan struct{}{}, map[string]time.Time{}, map[string]guesses{}, time.Time{}
}

// AsksPasswords reports whether there is a directory, whose users log in with passwords.
func (s *Store) AsksPasswords() bool {
	s.asks.mu.Lock()
	defer s.asks.mu.Unlock()
	return s.asks.dir != nil
}

// remembered returns the directory's last answer about a principal; ok is false for one that is not its user.
func (s *Store) remembered(ctx context.Context, name string) (k known, ok bool, err error) {
	var keys, rights string
	var fetched int64
	err = s.db.QueryRowContext(ctx, `SELECT dn, keys, rights, gone, fetched FROM directory WHERE principal = ?`, name).Scan(&k.dn, &keys, &rights, &k.gone, &fetched)
	if errors.Is(err, sql.ErrNoRows) {
		return k, false, nil
	}
	if err != nil {
		return k, false, err
	}
	k.fetched, k.keys = time.Unix(0, fetched), strings.Fields(keys)
	err = json.Unmarshal([]byte(rights), &k.rights)
	return k, err == nil, err
}

// directoryUser returns the directory's answer about one of its users: a cached one younger than the TTL, a new one, or if it does not answer the last
// one within the grace. local reports that the principal is not from the directory. An error means that this is unknown.
func (s *Store) directoryUser(ctx context.Context, name string) (k known, local, ok bool, err error) {
	k, there, err := s.remembered(ctx, name)
	if err != nil || !there {
		return k, !there, false, err
	}
	s.asks.mu.Lock()
	dir, policy := s.asks.dir, s.asks.policy
	s.asks.mu.Unlock()
	if dir == nil {
		return k, false, false, nil
	}
	if s.now().Sub(k.fetched) < policy.TTL {
		return k, false, !k.gone, nil
	}
	principal, found, err := s.ask(ctx, name)
	switch {
	case err == nil && (!found || principal != name):
		return k, false, false, nil
	case err == nil:
		k, _, err = s.remembered(ctx, name)
		return k, false, err == nil && !k.gone, err
	case fault.KindOf(err) == fault.Busy && s.now().Sub(k.fetched) < policy.Grace:
		return k, false, !k.gone, nil
	}
	return k, false, false, err
}

// ask queries the directory for a user, once for concurrent calls, and caches the answer.
func (s *Store) ask(ctx context.Context, name string) (principal string, ok bool, err error) {
	a := &s.asks
	for {
		a.mu.Lock()
		if a.dir == nil || s.now().Before(a.absent[name]) {
			a.mu.Unlock()
			return "", false, nil
		}
		if s.now().Before(a.down) {
			err := a.downErr
			a.mu.Unlock()
			return "", false, err
		}
		ttl := a.policy.TTL
		other, waiting := a.busy[name]
		if !waiting {
			break
		}
		a.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return "", false, ctx.Err()
		}
		if k, there, err := s.remembered(ctx, name); err != nil || there && s.now().Sub(k.fetched) < ttl {
			return name, err == nil && !k.gone, err
		}
	}
	mine := make(chan struct{})
	a.busy[name] = mine
	dir, policy := a.dir, a.policy
	a.mu.Unlock()
	e, found, err := dir.Lookup(ctx, name)
	if err == nil {
		principal, ok, err = s.learn(ctx, name, e, found, policy)
	}
	a.mu.Lock()
	if a.busy[name] == mine {
		delete(a.busy, name)
	}
	switch {
	case err == nil && !found:
		if len(a.absent) >= maxNames {
			clear(a.absent)
		}
		a.absent[name] = s.now().Add(absentFor)
	case fault.KindOf(err) == fault.Busy && ctx.Err() == nil:
		a.down, a.downErr = s.now().Add(downFor), err
	}
	a.mu.Unlock()
	close(mine)
	if err != nil && policy.Failed != nil && ctx.Err() == nil {
		policy.Failed(err)
	}
	return principal, ok, err
}

// learn stores an answer of the directory. A principal that is not from the directory is never taken over.
func (s *Store) learn(ctx context.Context, asked string, e Entry, found bool, policy DirectoryPolicy) (principal string, ok bool, err error) {
	now := s.now().UnixNano()
	if !found {
		_, err := s.db.ExecContext(ctx, `UPDATE directory SET gone = 1, fetched = ? WHERE principal = ?`, now, asked)
		return "", false, err
	}
	if _, err := ParseName(e.Name); err != nil {
		return "", false, err
	}
	var keys []string
	for _, text := range e.Keys {
		if pub, _, err := ParsePublicKey([]byte(text)); err == nil {
			keys = append(keys, Fingerprint(pub)+"|"+base64.StdEncoding.EncodeToString(pub.Marshal()))
		}
	}
	rights, err := json.Marshal(policy.Rights(e.Groups))
	if err != nil {
		return "", false, err
	}
	if checkEmail(e.Email) != nil {
		e.Email = ""
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `INSERT INTO principals(`+principalColumns+`) VALUES (?,?,?,0,0,0,?,?) ON CONFLICT(name) DO NOTHING`, e.Name, string(Person), e.Email, now, byDirectory); err != nil {
		return "", false, err
	}
	var by string
	if err := tx.QueryRowContext(ctx, `SELECT added_by FROM principals WHERE name = ?`, e.Name).Scan(&by); err != nil {
		return "", false, err
	}
	var theirs bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM directory WHERE principal = ?)`, e.Name).Scan(&theirs); err != nil {
		return "", false, err
	}
	if by != byDirectory && !theirs {
		return "", false, fault.New(fault.Refused, "ldap", "the user %s exists both on this server and in the directory; the directory user cannot log in", printable.Clip(e.Name, 200)).
			WithHint("to use the directory user, remove the local one:  corpus-git user remove %s", e.Name)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE principals SET email = ? WHERE name = ?`, e.Email, e.Name); err != nil {
		return "", false, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO directory(principal, dn, keys, rights, gone, fetched) VALUES (?,?,?,?,0,?)
		ON CONFLICT(principal) DO UPDATE SET dn = excluded.dn, keys = excluded.keys, rights = excluded.rights, gone = 0, fetched = excluded.fetched`,
		e.Name, e.DN, strings.Join(keys, " "), string(rights), now); err != nil {
		return "", false, err
	}
	return e.Name, true, tx.Commit()
}

// byDirectory is the AddedBy of the directory's principals.
const byDirectory = "ldap"

// identifyByDirectory returns the directory's user with a key: the user before the @, or one who has logged in before.
func (s *Store) identifyByDirectory(ctx context.Context, o Offer) (who Identity, ok bool, err error) {
	s.asks.mu.Lock()
	on := s.asks.dir != nil
	s.asks.mu.Unlock()
	if !on || checkKey(o.Key) != nil {
		return Identity{}, false, nil
	}
	if revoked, err := s.isRevoked(o.Key); err != nil || revoked {
		return Identity{}, false, err
	}
	name, err := s.holder(ctx, Fingerprint(o.Key))
	if err != nil {
		return Identity{}, false, err
	}
	if name != "" {
		if who, ok, err := s.holds(ctx, name, o); ok || err != nil {
			return who, ok, err
		}
	}
	if _, err := ParseName(o.User); err != nil || o.User == name {
		return Identity{}, false, nil
	}
	k, there, err := s.remembered(ctx, o.User)
	if err != nil {
		return Identity{}, false, err
	}
	name = o.User
	// The key may have been added a moment ago, so query again.
	if _, has := k.key(Fingerprint(o.Key)); !there || !has && s.now().Sub(k.fetched) >= strangerEvery {
		if name, ok, err = s.ask(ctx, o.User); err != nil || !ok {
			return Identity{}, false, err
		}
	}
	return s.holds(ctx, name, o)
}

// holds reports whether a user of the directory has the offered key.
func (s *Store) holds(ctx context.Context, name string, o Offer) (who Identity, ok bool, err error) {
	p, ok, err := s.active(ctx, name)
	if err != nil || !ok {
		return Identity{}, false, err
	}
	who = Identity{Name: name, Fingerprint: Fingerprint(o.Key), Admin: p.Admin, From: o.From}
	if ok, err = s.keyOfDirectory(ctx, who); err != nil || !ok {
		return Identity{}, false, err
	}
	return who, true, nil
}

// holder returns the directory's user with a fingerprint according to the last answer, "" if there is none.
func (s *Store) holder(ctx context.Context, fingerprint string) (string, error) {
	var name string
	err := s.db.QueryRowContext(ctx, `SELECT principal FROM directory WHERE ' ' || keys || ' ' LIKE '% ' || ? || '|%' ORDER BY fetched DESC LIMIT 1`, fingerprint).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return name, err
}

// SignIn returns the identity for a name and its password in the directory. ok is false if the password is wrong. Too many wrong passwords for one
// name from one address within a quarter of an hour are fault.Busy, as is a directory that gives no answer.
func (s *Store) SignIn(ctx context.Context, name, password, from string) (who Identity, ok bool, err error) {
	s.asks.mu.Lock()
	dir, policy, tried := s.asks.dir, s.asks.policy, s.asks.wrong[guesser(name, from)]
	s.asks.mu.Unlock()
	if dir == nil || password == "" {
		return Identity{}, false, nil
	}
	if _, err := ParseName(name); err != nil {
		return Identity{}, false, nil
	}
	if tried.n >= maxGuesses && s.now().Sub(tried.since) < guessWindow {
		return Identity{}, false, fault.New(fault.Busy, "log in", "too many wrong passwords for %s", name).WithHint("try again in 15 minutes")
	}
	e, ok, err := dir.Authenticate(ctx, name, password)
	if err != nil {
		return Identity{}, false, err
	}
	if !ok {
		s.guessed(guesser(name, from))
		return Identity{}, false, nil
	}
	principal, ok, err := s.learn(ctx, name, e, true, policy)
	if err != nil || !ok {
		return Identity{}, false, err
	}
	return s.ForSession(ctx, principal, from)
}

// guesser identifies the source of guesses, so that wrong passwords from elsewhere do not lock anybody out.
func guesser(name, from string) string {
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	return strings.ToLower(name) + " " + from
}

// guessed counts a wrong password.
func (s *Store) guessed(name string) {
	a := &s.asks
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.wrong[name]
	if s.now().Sub(g.since) >= guessWindow {
		g = guesses{since: s.now()}
	}
	g.n++
	if len(a.wrong) >= maxNames {
		clear(a.wrong)
	}
	a.wrong[name] = g
}

// keyOfDirectory reports whether the directory has, for that user, the key that authenticated who, and the key is not revoked.
func (s *Store) keyOfDirectory(ctx context.Context, who Identity) (bool, error) {
	k, _, ok, err := s.directoryUser(ctx, who.Name)
	if err != nil || !ok {
		return false, err
	}
	key, ok := k.key(who.Fingerprint)
	if !ok {
		return false, nil
	}
	revoked, err := s.isRevoked(key)
	return err == nil && !revoked, err
}

// DirectoryUser is a directory's answer about a user, and what it means here.
type DirectoryUser struct {
	Entry
	Rights []GroupRight
	// Fingerprints are the fingerprints of the keys that may log in, Unusable is the number of keys that may not.
	Fingerprints []string
	Unusable     int
}

// LookupUser asks the directory for a user, and changes nothing. It is fault.Refused if there is no directory, or no such user.
func (s *Store) LookupUser(ctx context.Context, name string) (DirectoryUser, error) {
	s.asks.mu.Lock()
	dir, policy := s.asks.dir, s.asks.policy
	s.asks.mu.Unlock()
	if dir == nil {
		return DirectoryUser{}, fault.New(fault.Refused, "ldap", "no directory is configured").WithHint("set ldap.url and ldap.base")
	}
	e, ok, err := dir.Lookup(ctx, name)
	if err != nil {
		return DirectoryUser{}, err
	}
	if !ok {
		return DirectoryUser{}, fault.New(fault.Refused, "ldap", "the directory has no user %s", printable.Clip(name, 200)).WithHint("see ldap.base and ldap.user_filter")
	}
	out := DirectoryUser{Entry: e, Rights: policy.Rights(e.Groups)}
	for _, text := range e.Keys {
		if pub, _, err := ParsePublicKey([]byte(text)); err == nil {
			out.Fingerprints = append(out.Fingerprints, Fingerprint(pub))
		} else {
			out.Unusable++
		}
	}
	return out, nil
}

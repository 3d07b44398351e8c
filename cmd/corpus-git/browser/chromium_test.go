//go:build browser

package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// size is that of a window.
type size struct {
	name          string
	width, height int64
}

// tab is a page in Chromium.
type tab struct {
	t    *testing.T
	ctx  context.Context
	m    *machine
	size size
	axe  string
	shot int

	mu  sync.Mutex
	bad []string
}

// chromium starts a browser that ends with the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chrome-headless-shell", "google-chrome", "chromium-browser"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	require.NotEmpty(t, path, "no Chromium in PATH: install the package chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("force-color-profile", "srgb"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

func openTab(t *testing.T, browser context.Context, m *machine, s size) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, m: m, size: s}
	if path := os.Getenv("CORPUS_GIT_AXE"); path != "" {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		b.axe = string(text)
	}
	require.NoError(t, chromedp.Do(ctx)) // makes the tab, which lasts as long as this context
	require.NoError(t, chromedp.Listen(ctx, b.hears))
	b.do(chromedp.EmulateViewport(s.width, s.height), command(log.Enable, cdp.Empty{}))
	return b
}

// hears notes what went wrong on a page.
func (b *tab) hears(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *runtime.EventExceptionThrown:
		b.bad = append(b.bad, fmt.Sprint(*e.ExceptionDetails))
	case *log.EventEntryAdded: // what the policy forbids, what could not be loaded
		if refused := strings.Contains(e.Entry.Text, "status of 4") && !strings.Contains(e.Entry.URL, "/assets/"); e.Entry.Level == "error" && !refused {
			b.bad = append(b.bad, e.Entry.Text+" "+e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.bad = append(b.bad, "a dialog: "+e.Message)
	}
}

// command is an action that sends a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// do runs actions.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	b.must(chromedp.Do(ctx, actions...), "")
}

// must ends the test with what the page says.
func (b *tab) must(err error, what string) {
	b.t.Helper()
	if err == nil {
		return
	}
	b.picture("failed")
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	require.NoError(b.t, err, "%s\n%s\n%s", what, at, body)
}

// eval gives the value of an expression.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	b.must(err, js)
	return v
}

// until waits for an expression to be true; the page may be another one by then.
func (b *tab) until(js string) {
	b.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if ok, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.readyState !== 'loading' && ("+js+")")); err == nil && ok {
			return
		}
	}
	b.must(fmt.Errorf("it did not become true: %v", err), js)
}

// open goes to a page.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate("http://" + b.m.http + path))
}

// shows waits until a selector has a text.
func (b *tab) shows(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))`, quoted(selector), quoted(text)))
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a text always can be
	return string(text)
}

// press clicks a link or a button by what it says, and waits for the page that comes.
func (b *tab) press(text string) {
	b.t.Helper()
	js := fmt.Sprintf(`[...document.querySelectorAll("main a, main button")].find(e => e.textContent.trim() === %s)`, quoted(text))
	b.until(js + " !== undefined")
	eval[bool](b, "window.before = true")
	b.do(chromedp.Evaluate[chromedp.Void](js + ".click()"))
	b.until("window.before === undefined")
}

// fill types into the fields of a form.
func (b *tab) fill(fields map[string]string) {
	b.t.Helper()
	for name, text := range fields {
		b.do(chromedp.SetValue(chromedp.CSS("main [name="+name+"]"), text))
	}
}

// click clicks what a selector finds.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// picture keeps how the page looks.
func (b *tab) picture(name string) {
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return
	}
	b.shot++
	_ = os.WriteFile(filepath.Join(b.t.ArtifactDir(), fmt.Sprintf("%s-%02d-%s.png", b.size.name, b.shot, name)), png, 0o644)
}

// looks checks what holds for every page, and keeps how it looks: nothing of a push became markup, nothing was forbidden or failed, nothing is beside the
// window, and axe finds nothing, in the light and in the dark.
func (b *tab) looks(name string) {
	b.t.Helper()
	require.False(b.t, eval[bool](b, `document.querySelector("#xss") !== null || window.xss !== undefined`), "%s: what was pushed became markup", name)
	require.LessOrEqual(b.t, eval[int64](b, `document.documentElement.scrollWidth`), b.size.width, "%s is wider than the window", name)
	b.mu.Lock()
	bad := b.bad
	b.mu.Unlock()
	require.Empty(b.t, bad, name)
	b.picture(name)
	if b.axe == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		found := eval[string](b, b.axe+`; axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + n.any.map(a => a.message).join())])))`)
		if scheme == "dark" {
			b.picture(name + "-dark")
		}
		require.Equal(b.t, "[]", found, "axe: %s, %s", name, scheme)
	}
	b.scheme("light")
}

// scheme is light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}}))
}

// scripts switches JavaScript on or off.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// shellQuoted is a text within single quotes of a shell.
func shellQuoted(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }

// yamlQuoted is a text within double quotes of YAML.
func yamlQuoted(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }

// xmlQuoted is a text as the value of an attribute of XML.
func xmlQuoted(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(s)
}

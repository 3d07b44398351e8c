package system

import (
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// addLocale adds locale.present for a machine of the family of Debian, whose files are below root.
// Source: Salt documentation, locale state; locale-gen(8), locale.gen(5).
func addLocale(t *core.Table, root string) {
	t.Add("locale.present", "", func(c *core.Call) core.Return { return localePresent(c, root) })
}

// localeName returns a locale as `locale -a` lists it: without the charmap that follows it, the codeset in small letters and without dashes.
func localeName(s string) string {
	s, _, _ = strings.Cut(s, " ")
	s, modifier, _ := strings.Cut(s, "@")
	s, codeset, _ := strings.Cut(s, ".")
	language, territory, _ := strings.Cut(s, "_")
	if territory != "" {
		language += "_" + strings.ToUpper(territory)
	}
	if codeset != "" {
		language += "." + strings.ReplaceAll(strings.ToLower(codeset), "-", "")
	}
	if modifier != "" {
		language += "@" + modifier
	}
	return language
}

func localePresent(c *core.Call, root string) core.Return {
	available := func() bool {
		out, err := c.Query("locale", "-a")
		return err == nil && slices.ContainsFunc(strings.Fields(out), func(have string) bool { return localeName(have) == localeName(c.Name) })
	}
	if available() {
		return core.OKf("Locale %s is already present", c.Name)
	}
	if c.Test { // a package that an earlier state installs may bring what makes it
		return core.Would(nil, "Locale %s needs to be generated", c.Name)
	}
	line := c.Name
	if codeset := strings.SplitN(c.Name, ".", 2); !strings.Contains(c.Name, " ") && len(codeset) == 2 {
		charmap, _, _ := strings.Cut(codeset[1], "@")
		line += " " + charmap
	}
	gen := filepath.Join(root, "etc/locale.gen")
	supported, err := vfs.ReadFollowed(filepath.Join(root, "usr/share/i18n/SUPPORTED"), vfs.MaxRead)
	if err != nil || !c.Installed("locale-gen") {
		return core.Failf("Failed to generate locale %s: this machine has no locale-gen, or no /usr/share/i18n/SUPPORTED; Debian has both in the package locales", c.Name)
	}
	if !slices.Contains(strings.Split(string(supported), "\n"), line) {
		return core.Failf("Failed to generate locale %s: no line of /usr/share/i18n/SUPPORTED is %q", c.Name, line)
	}
	if err := selectLocale(c, gen, line); err != nil {
		return core.Failf("Failed to generate locale %s: %s", c.Name, core.Cause(err))
	}
	if err := c.BeforeAction(undo.Action{Noun: "locale", Name: c.Name, Last: true, Undo: []string{"locale-gen"}}); err != nil {
		return core.Failf("Failed to generate locale %s: %s", c.Name, err)
	}
	if _, err := c.Tool("locale-gen"); err != nil {
		return core.Failf("Failed to generate locale %s: %s", c.Name, strings.Join(c.Problems(err), ""))
	}
	if !available() {
		return core.Failf("Failed to generate locale %s: locale-gen ended, and `locale -a` does not list it", c.Name)
	}
	return core.Return{Result: core.True, Changes: py.NewDict("locale", c.Name), Comment: "Generated locale " + c.Name}
}

// selectLocale puts a line into /etc/locale.gen, in the place where it stands as a comment.
func selectLocale(c *core.Call, path, line string) error {
	text, err := vfs.ReadFollowed(path, vfs.MaxRead)
	if err != nil && core.Exists(path) {
		return err
	}
	lines, found := core.SplitLines(string(text)), false
	for i, l := range lines {
		switch bare := strings.TrimSpace(l); {
		case bare == line:
			return nil
		case !found && strings.HasPrefix(bare, "#") && strings.TrimSpace(bare[1:]) == line:
			lines[i], found = line, true
		}
	}
	if !found {
		lines = append(lines, line)
	}
	return c.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

package state

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addCron adds Salt's cron module, through crontab(1).
func addCron(t *Table) {
	t.add("cron.present", "user minute hour daymonth month dayweek comment commented identifier special", cronPresent)
	t.add("cron.absent", "user identifier minute hour daymonth month dayweek comment commented special", cronAbsent)
}

// cronMark goes before an entry that has an identifier, so that it is found again when its command changes.
const cronMark = "SALT_CRON_IDENTIFIER:"

// cronHead goes before the first entry, as Salt writes it.
const cronHead = "# Lines below here are managed by Salt, do not edit"

func (c *Call) crontab() ([]string, error) {
	out, err := c.quiet("crontab", "-u", c.str("user", "root"), "-l")
	if err != nil && !strings.Contains(err.Error(), "no crontab") {
		return nil, err
	}
	return pySplitLines(out), nil
}

func (c *Call) writeCrontab(lines []string) error {
	text := strings.Join(lines, "\n") + "\n"
	_, err := c.toolAs(host.Shell{Argv: []string{"crontab", "-u", c.str("user", "root"), "-"}, Stdin: text})
	return err
}

func (c *Call) cronID() string {
	if v, ok := c.Args.GetStr("identifier"); ok && v != false {
		if v == nil {
			return ""
		}
		return py.Str(v)
	}
	return c.Name
}

// cronFind gives the index of an entry, and of the comment lines above that belong to it.
func (c *Call) cronFind(lines []string) (from, at int) {
	id := c.cronID()
	for i, l := range lines {
		entry := strings.TrimPrefix(l, "#DISABLED#")
		byCommand := cronCommand(entry) == c.Name
		byID := i > 0 && id != "" && strings.HasSuffix(lines[i-1], cronMark+id)
		if !byCommand && !byID || strings.HasPrefix(entry, "#") {
			continue
		}
		from = i
		for from > 0 && strings.HasPrefix(lines[from-1], "#") && strings.Contains(lines[from-1], cronMark) {
			from--
		}
		return from, i
	}
	return -1, -1
}

// cronCommand is the command of a line of a crontab.
func cronCommand(l string) string {
	n := 5
	if strings.HasPrefix(l, "@") {
		n = 1
	}
	for ; n > 0; n-- {
		l = strings.TrimLeft(l, " \t")
		i := strings.IndexAny(l, " \t")
		if i < 0 {
			return ""
		}
		l = l[i:]
	}
	return strings.TrimSpace(l)
}

// cronPresent implements cron.present. Source: Salt documentation, cron state.
func cronPresent(c *Call) Return {
	if !c.installed("crontab") {
		return Failf("crontab is not installed on this machine")
	}
	when := c.str("special", "")
	if when == "" {
		for _, f := range []string{"minute", "hour", "daymonth", "month", "dayweek"} {
			if v := c.str(f, "*"); v == "random" {
				return Failf("random times are not supported: they would move at each deployment")
			}
			when += " " + c.str(f, "*")
		}
	}
	entry := strings.TrimSpace(when) + " " + c.Name
	if c.boolean("commented", false) {
		entry = "#DISABLED#" + entry
	}
	var block []string
	note := ""
	if s := c.str("comment", ""); s != "" {
		note = strings.ReplaceAll(s, "\n", " ") + " "
	}
	if id := c.cronID(); id != "" {
		block = append(block, "# "+note+cronMark+id)
	}
	block = append(block, entry)
	lines, err := c.crontab()
	if err != nil {
		return Failf("%s", err)
	}
	user := c.str("user", "root")
	from, at := c.cronFind(lines)
	if at > from && len(block) > 1 && note == "" { // the comment that is there stays
		block[0] = lines[from]
	}
	if at >= 0 && strings.Join(lines[from:at+1], "\n") == strings.Join(block, "\n") {
		return OKf("Cron %s already present", c.Name)
	}
	if c.Test {
		verb := "added"
		if at >= 0 {
			verb = "updated"
		}
		return Would(nil, "Cron %s is set to be %s", c.Name, verb)
	}
	out := append([]string{}, lines...)
	if !slices.Contains(out, cronHead) {
		out = append(out, cronHead)
		if at >= 0 { // it was there before Salt was
			out, from, at = append([]string{cronHead}, lines...), from+1, at+1
			lines = out
		}
	}
	if at >= 0 {
		out = append(append(append([]string{}, lines[:from]...), block...), lines[at+1:]...)
	} else {
		out = append(out, block...)
	}
	if err := c.writeCrontab(out); err != nil {
		return Failf("Cron %s for user %s failed to commit: %s", c.Name, user, err)
	}
	ret := Return{Result: True, Changes: py.NewDict(user, c.Name), Comment: "Cron " + c.Name + " added to " + user + "'s crontab"}
	if at >= 0 {
		ret.Comment = "Cron " + c.Name + " updated"
	}
	return ret
}

func cronAbsent(c *Call) Return {
	if !c.installed("crontab") {
		return OKf("Cron %s already absent", c.Name)
	}
	lines, err := c.crontab()
	if err != nil {
		return Failf("%s", err)
	}
	from, at := c.cronFind(lines)
	if at < 0 {
		return OKf("Cron %s already absent", c.Name)
	}
	if c.Test {
		return Would(nil, "Cron %s is set to be removed", c.Name)
	}
	user := c.str("user", "root")
	if err := c.writeCrontab(append(append([]string{}, lines[:from]...), lines[at+1:]...)); err != nil {
		return Failf("Cron %s for user %s failed to commit: %s", c.Name, user, err)
	}
	return Return{Result: True, Changes: py.NewDict(user, c.Name), Comment: "Cron " + c.Name + " removed from " + user + "'s crontab"}
}

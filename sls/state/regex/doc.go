// Package regex matches Python's regular expressions against text or bytes, as Salt's states do.
package regex

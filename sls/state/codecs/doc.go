// Package codecs encodes and decodes text like Python's codecs, using Python's names of encodings.
package codecs

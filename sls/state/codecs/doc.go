// Package codecs encodes and decodes text as Python's codecs do, by Python's names of encodings.
package codecs

// Command image writes the container image of corpus-git as an OCI image layout in a tar, without a container engine: the program, its configuration and,
// where no other root file system lies below, accounts and the certificates of public authorities. The same input gives the same bytes: times are those of
// SOURCE_DATE_EPOCH, owners are root, and entries have a fixed order.
//
// The file holds a manifest.json, too, by which engines load it that know Docker's format only.
// Formats: https://github.com/opencontainers/image-spec/blob/main/image-layout.md and config.md.
package main

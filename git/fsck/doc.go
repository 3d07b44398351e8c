// Package fsck checks single git objects as they are received, and refuses those that would harm later readers.
//
// It owns the rules below and reads only the bytes it is given. The rules are those of git-fsck(1) that matter to a server that checks
// commits out; their names are git's (fsck-msgids).
//
// Refused:
//   - commits: nulInHeader, unterminatedHeader, missingTree, badTreeSha1, badParentSha1, missingAuthor, missingCommitter
//   - tags: nulInHeader, unterminatedHeader, missingObject, badObjectSha1, missingTypeEntry, badType, missingTagEntry
//   - trees: badTree (truncated or not decodable), nullSha1, fullPathname, emptyName, hasDot, hasDotdot, hasDotgit (in any case, with the characters
//     that HFS+ ignores, in NTFS' spellings), duplicateEntries, treeNotSorted, badFilemode (a type that git does not know), gitmodulesSymlink
//   - the blob of a .gitmodules: gitmodulesName, gitmodulesUrl, gitmodulesPath, gitmodulesUpdate, gitmodulesLarge
//
// Accepted, because old and converted histories hold them and nothing here is harmed: zeroPaddedFilemode, file modes with odd permission bits
// (100664 and the like), names, e-mail addresses, dates and time zones of every form, multipleAuthors, badTagName, missingTaggerEntry,
// extra headers, NUL in a message, symbolic links named .gitattributes, .gitignore or .mailmap (git reports these as "info" too; programs that read such
// files must not follow links), a .gitmodules that does not parse.
//
// Concurrency: functions without state. A crash leaves nothing.
package fsck

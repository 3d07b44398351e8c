// Command bench measures corpus-git against a named peer, in the same run and on the same machine.
//
//	go run ./bench push     one-file push, against OpenSSH sshd + git receive-pack + a post-receive script
//	go run ./bench burst    pushes back to back, against the same and, with SALT_CALL, the original's stack; and where the server's time goes; CORPUS_GIT_BENCH_BURST=20x10 is a small project
//	go run ./bench load     100 projects pushed at once, 20 pushes each, against the same; CORPUS_GIT_BENCH_LOAD=10x5 is less
//	go run ./bench projects a server of 10,000 projects against one of ten: start, and one push
//	go run ./bench records  a server of 100,000 records of deployments against one of ten: listing them, one push, and start; CORPUS_GIT_BENCH_RECORDS=10000 is less
//	go run ./bench idle     1,000 connections that do nothing: memory, and a push against one without them
//	go run ./bench nodes    a change on 10 nodes, against a loop of ssh and rsync and a playbook of Ansible; CORPUS_GIT_BENCH_NODES=3x500x3 is less
//	go run ./bench agents   1,000 agents that dial in: memory and processor time of the hub, and pushes to all of them; CORPUS_GIT_BENCH_AGENTS=100 is less
//	go run ./bench agentsnats   the same over NATS
//	go run ./bench sls      steps and states, against one Salt process and against one salt-call for each step
//	go run ./bench files    a step of 1,000 and of 10,000 files, against one Salt process
//	go run ./bench jinja    templates of SLS files, against Jinja2
//	go run ./bench archive  archives, rollback, compaction and restore, against rsync -Aa --delete
//	go run ./bench rollback a push that fails late and is rolled back, and one that changes files outside of its tree, against a good one
//	go run ./bench fixperms permissions of an unchanged tree, against find -printf '%m %u %g' and the original's find -exec
//	go run ./bench checkout  70,000 files, one of them, none, against git checkout with two workers and as shipped, git reset and git status
//	go run ./bench -packs a,b checkout   the newest trees of real repositories, from their packs
//	go run ./bench packs    a push after 1, 100 and 365 daily ones, with and without maintenance, against git receive-pack with and without gc
//	go run ./bench -packs a,b pack   packs of real repositories, against git index-pack, and the smallest push
//
// CORPUS_GIT_BENCH_KEEP=1 leaves a benchmark's folder: on ext4 without a journal, each file that is created costs more for some minutes after many were removed. TMPDIR may name a file system of its own.
//
// Each benchmark prints both times and their ratio; current results are in RESULTS.md. Timing
// decides no test. Peers listen on 127.0.0.1, on ports of their own, and are ended by the process that started them.
package main

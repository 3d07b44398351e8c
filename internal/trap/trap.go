package trap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Decide is called before each trapped call of the process. Zero lets the call happen, an error number is what it returns instead
// of happening, and Kill ends the process there with SIGKILL. It is called by one goroutine at a time.
type Decide func(Call) syscall.Errno

// Kill is an answer of Decide; no call returns such a number.
const Kill = syscall.Errno(1 << 20)

// Option changes what Start traps.
type Option bool

// WithReads also traps calls that read.
const WithReads Option = true

// notification is struct seccomp_notif, answer is struct seccomp_notif_resp of linux/seccomp.h.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// Start starts a command whose program calls Enter before anything else, and calls decide at each of its calls until it has
// ended. It returns when the process is trapped.
func Start(cmd *exec.Cmd, decide Decide, options ...Option) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "trap")
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	v := strconv.Itoa(2 + len(cmd.ExtraFiles))
	if len(options) > 0 {
		v += "r"
	}
	cmd.Env = append(cmd.Env, variable+"="+v)
	err = errors.Join(cmd.Start(), theirs.Close())
	if err != nil {
		return errors.Join(err, unix.Close(pair[0]))
	}
	listener, err := receive(pair[0])
	if err != nil {
		_ = cmd.Process.Kill()
		return errors.Join(fmt.Errorf("the process did not enter the trap: %w", err), unix.Close(pair[0]))
	}
	l := &listening{fd: listener, pid: cmd.Process.Pid, decide: decide, kinds: kinds()}
	go l.serve()
	_, err = unix.Write(pair[0], []byte{1})
	return errors.Join(err, unix.Close(pair[0]))
}

// receive takes the listener that the process sends.
func receive(sock int) (int, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		_, n, _, _, err := unix.Recvmsg(sock, b[:], oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return -1, err
		}
		msgs, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil || len(msgs) != 1 {
			return -1, errors.Join(errors.New("it ended, or the kernel has no such filter"), err)
		}
		fds, err := unix.ParseUnixRights(&msgs[0])
		if err != nil {
			return -1, err
		}
		return fds[0], nil
	}
}

type listening struct {
	fd     int
	pid    int
	decide Decide
	kinds  map[uint32]kind
}

// serve responds until the last process with the filter has ended.
func (l *listening) serve() {
	defer func() { _ = unix.Close(l.fd) }()
	for {
		p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		_, err := unix.Poll(p, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, p[0].Revents&unix.POLLIN == 0:
			return
		}
		var n notification
		if err := control(l.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // it has ended meanwhile, or a signal arrived
		}
		a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		switch errno := l.ask(n); errno {
		case 0:
		case Kill:
			_ = syscall.Kill(l.pid, syscall.SIGKILL)
			continue
		default:
			a.flags, a.errno = 0, -int32(errno)
		}
		_ = control(l.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) // ENOENT: it has been killed
	}
}

// ask returns the answer to one call: calls of other processes are let through.
func (l *listening) ask(n notification) syscall.Errno {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", l.pid, n.pid)); err != nil {
		return 0
	}
	c := l.kinds[uint32(n.number)].decode(int(n.pid), n.args)
	if c.Path == "" {
		return 0
	}
	return l.decide(c)
}

func control(fd int, request uint, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

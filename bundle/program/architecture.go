package program

import (
	"encoding/binary"
	"errors"
	"io"
)

// elfMachines maps e_machine of ELF programs (elf(5); the numbers are those of the System V gABI, "Machine") to GOARCH, for 64 bits and for 32; "" is neither.
var elfMachines = map[uint16][2]string{
	3:   {"", "386"},
	40:  {"", "arm"},
	21:  {"ppc64", ""},
	22:  {"s390x", ""},
	62:  {"amd64", ""},
	183: {"arm64", ""},
	243: {"riscv64", ""},
	258: {"loong64", ""},
}

// Architecture returns the GOARCH that a program was built for, "" for what is no ELF program, such as a script, or one of an unknown machine.
func Architecture(in io.Reader) (string, error) {
	head := make([]byte, 20)
	if _, err := io.ReadFull(in, head); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	if string(head[:4]) != "\x7fELF" {
		return "", nil
	}
	order, arch := binary.ByteOrder(binary.LittleEndian), ""
	if head[5] == 2 { // ELFDATA2MSB
		order = binary.BigEndian
	}
	if names := elfMachines[order.Uint16(head[18:])]; head[4] == 2 { // ELFCLASS64
		arch = names[0]
	} else {
		arch = names[1]
	}
	if arch == "ppc64" && head[5] == 1 {
		arch = "ppc64le"
	}
	return arch, nil
}

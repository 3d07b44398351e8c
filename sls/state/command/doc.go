// Package command implements the state functions that run something and manage nothing: cmd, module (execution
// functions as states), and test.
package command

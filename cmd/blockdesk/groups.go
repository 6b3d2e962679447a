package main

import "github.com/spf13/cobra"

// commandGroup is a part of the help: what a person may want to do.
type commandGroup struct {
	id, title string
	commands  []func(*settings) *cobra.Command
}

// commandGroups are all commands in the order of the help.
func commandGroups() []commandGroup {
	type commands = []func(*settings) *cobra.Command
	return []commandGroup{
		{"run", "Run it", commands{serveCommand, signerCommand, sandboxCommand, configCommand, healthCommand, clusterCommand}},
		{"desk", "The desk", commands{ticketCommand, priceCommand, inventoryCommand, lockCommand, unlockCommand, moneyCommand}},
		{"clients", "Clients and their sessions", commands{fixCommand, tokenCommand, passwordCommand}},
		{"data", "Data", commands{backupCommand, restoreCommand, journalCommand}},
		{"keys", "Keys", commands{keyCommand}},
		{"try", "Try and measure", commands{walletCommand, benchCommand}},
		{"program", "This program", commands{completionCommand, helpCommand, versionCommand}},
	}
}

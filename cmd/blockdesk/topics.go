package main

import "github.com/spf13/cobra"

// helpTopics are texts that belong to no one command.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "configuration", Short: "Where settings come from, and which wins", Long: aboutConfiguration},
		{Use: "environment", Short: "Variables that the program reads", Long: aboutEnvironment},
		{Use: "exit-codes", Short: "What exit codes mean, and what --json prints of a failure", Long: aboutExitCodes},
		{Use: "output", Short: "What commands print: tables, JSON, progress", Long: aboutOutput},
		{Use: "files", Short: "What is in the data folder", Long: aboutFiles},
	}
}

const aboutConfiguration = `Where settings come from, and which wins.

  1. flags: --data FOLDER, and --set KEY=VALUE, which may be repeated
  2. the environment: listen.fix is BLOCKDESK_LISTEN_FIX
  3. a file in YAML: --config FILE, else blockdesk.yaml where there is one
  4. the defaults

The first that has a value wins. A key that there is not is an error, with its line.
Lists, such as instruments and rfq.pairs, are in the file alone.

  blockdesk config          what is in force, and where each value is from
  blockdesk config keys     every key with its default, unit and range
  blockdesk config check    whether a service would start with it

docs/configuration.md has the whole file with comments.`

const aboutEnvironment = `Variables that the program reads.

  BLOCKDESK_<KEY>            one setting: dots of the key become underscores, letters
                             capitals; BLOCKDESK_LISTEN_FIX=127.0.0.1:0
  BLOCKDESK_OPERATOR_TOKEN   operator's token of the commands that talk to a service;
                             --operator-token wins over it
  BLOCKDESK_FIX_PASSWORD     password of fix client
  BLOCKDESK_TESTDATA         folder of the recorded inputs of bench
  NO_COLOR                   no colours where they would be shown

Another variable that begins with BLOCKDESK_ and names no setting is an error, so that a
misspelt one is not passed over.`

const aboutExitCodes = `What exit codes mean.

  0    done; of serve, sandbox and signer: stopped as they were told
  1    failed: the error says why
  2    the command line is wrong: nothing was tried
  3    the command needs a running service, and none answers
  130  interrupted by Ctrl-C or SIGTERM before it was done

A reader that goes away (blockdesk journal dump | head -1) is no failure: the command
ends, quietly, with 0.

With --json a failure is an object on one line of standard output, the last one:

  {"ok":false,"code":"USAGE","error":"…","next":"…"}

code is USAGE, CONFIGURATION, NO_SERVICE, INTERRUPTED, NO_JOURNAL, NOT_EMPTY, IN_USE,
DAMAGED, ADDRESS_IN_USE, DISK_FULL, NOT_PERMITTED, NOT_FOUND, EXISTS or FAILED; where the
service has refused, its own code, with reason and request_id. next, where it is there,
says what may help.`

const aboutOutput = `What commands print.

Answers go to standard output: tables for people, or with --json one object with
"ok": true. These print JSON lines, one object each, and no "ok" but in a failure's:
journal dump, journal audit, fix log, fix client, bench all. serve, sandbox and signer print
one object when they are up.

Messages, logs and progress go to standard error. Work that takes long shows a bar there
where it is a terminal, and otherwise, or with --json, a line every 10 seconds. Nothing of
it is on standard output.

Colours are shown on a terminal alone, and never where NO_COLOR is set.`

const aboutFiles = `What is in the data folder (--data, data_dir; default data).

  addresses.json      where the service listens: how commands find it
  operator.token      token of the operator that serve makes where none is configured;
                      only the service's user can read it
  journal/            the journal and its snapshots: the truth
  desk/ fix/          what the desk and the FIX sessions know beside it
  settle/ mirror/     signed transactions, payments and tokens; what was read of chains
  history/            trades and candles
  chain/              the demo's local chain, with its wallets
  rfq.applied.json    what the configuration said of the desk at the last start
  tokenlist.json      the token list that was published last

The folder is one state: copy it with blockdesk backup, never file by file while a service
runs. blockdesk.yaml, in the folder that a command is started in, is its configuration
where --config names no other.`

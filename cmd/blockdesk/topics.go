package main

import "github.com/spf13/cobra"

// helpTopics are texts that belong to no single command.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "configuration", Short: "Where settings come from, and which one wins", Long: aboutConfiguration},
		{Use: "environment", Short: "Variables that the program reads", Long: aboutEnvironment},
		{Use: "exit-codes", Short: "What exit codes mean, and how --json prints a failure", Long: aboutExitCodes},
		{Use: "output", Short: "What commands print: tables, JSON, progress", Long: aboutOutput},
		{Use: "files", Short: "What is in the data folder", Long: aboutFiles},
	}
}

const aboutConfiguration = `Where settings come from, and which one wins.

  1. flags: --data FOLDER, and --set KEY=VALUE, which may be repeated
  2. the environment: listen.fix is BLOCKDESK_LISTEN_FIX
  3. a file in YAML: --config FILE, else blockdesk.yaml if it exists
  4. the defaults

The first one that has a value wins. An unknown key is an error, with its line. Lists, such as
instruments and rfq.pairs, can only be set in the file.

  blockdesk config          the values in force, and the source of each
  blockdesk config keys     every key with its default, unit and range
  blockdesk config check    whether a service would start with it

docs/configuration.md has the complete file with comments.`

const aboutEnvironment = `Variables that the program reads.

  BLOCKDESK_<KEY>            one setting: the key in capitals, with underscores for dots;
                             BLOCKDESK_LISTEN_FIX=127.0.0.1:0
  BLOCKDESK_OPERATOR_TOKEN   operator's token for commands that need a running service;
                             --operator-token wins over it
  BLOCKDESK_FIX_PASSWORD     password of fix client
  BLOCKDESK_TESTDATA         folder of the recorded inputs of bench
  NO_COLOR                   disables colours

Any other variable that begins with BLOCKDESK_ is an error, so that a misspelt one is not
ignored.`

const aboutExitCodes = `What exit codes mean.

  0    done; serve, sandbox and signer: stopped by a signal
  1    failed: the error says why
  2    the command line is invalid: nothing was tried
  3    the command needs a running service, and none answers
  130  interrupted by Ctrl-C or SIGTERM before it was done

A closed pipe (blockdesk journal dump | head -1) is not a failure: the command exits
with 0.

With --json a failure is an object on one line of standard output, the last one:

  {"ok":false,"code":"USAGE","error":"…","next":"…"}

code is USAGE, CONFIGURATION, NO_SERVICE, INTERRUPTED, NO_JOURNAL, NOT_EMPTY, IN_USE,
DAMAGED, ADDRESS_IN_USE, DISK_FULL, NOT_PERMITTED, NOT_FOUND, EXISTS or FAILED; a refusal
of the service has the service's code, with reason and request_id. next, if present, is a
next step.`

const aboutOutput = `What commands print.

Answers go to standard output: tables, or with --json one object with "ok": true. These
commands print JSON lines, an object each, and "ok" only in a failure: journal dump, journal
audit, fix log, fix client, bench all. serve, sandbox and signer print one object when they
are ready.

Messages, logs and progress go to standard error. Long work shows a bar on a terminal, and
otherwise, or with --json, a line every 10 seconds.

Colours appear only on a terminal, and never if NO_COLOR is set.`

const aboutFiles = `What is in the data folder (--data, data_dir; default data).

  addresses.json      the service's addresses, for other commands
  operator.token      token of the operator that serve creates if none is configured;
                      only the service's user can read it
  journal/            the journal and its snapshots: the source of truth
  desk/ fix/          answers of the desk; sessions and reports of FIX
  settle/ mirror/     signed transactions, payments and tokens; swaps read from chains
  history/            trades and candles
  chain/              the demo's local chain, with its wallets
  rfq.applied.json    configured values of the desk at the last start
  tokenlist.json      the token list that was published last

The folder is one state: copy it with blockdesk backup, never file by file while a service
runs. Without --config a command reads blockdesk.yaml in the working folder.`

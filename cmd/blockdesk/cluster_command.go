package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/persist/quorum"
	"blockdesk/service/operator"
)

const (
	// pollEvery is the time between two reads of a command that waits.
	pollEvery = 300 * time.Millisecond
	// watchEvery is the time between two reads of `cluster status --watch`.
	watchEvery = 2 * time.Second
)

// errGroupDegraded is wrapped if a group has no leader or cannot lose another node.
var errGroupDegraded = errors.New("the group is degraded or has no leader")

// groupClient reads a group from its nodes, and changes it through its leader.
type groupClient struct {
	s     *settings
	f     *operatorFlags
	seeds []string
}

// dialGroup finds the nodes' admin addresses: the given one, or that of the node on the data
// folder and those of peers. It sends nothing.
func dialGroup(s *settings, f *operatorFlags) (*groupClient, error) {
	g := &groupClient{s: s, f: f}
	if f.admin != "" {
		at, err := s.adminURL(f.admin)
		g.seeds = []string{at}
		return g, err
	}
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	at, err := operator.ReadAddresses(cfg.DataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	g.seeds = append(g.seeds, at.Admin)
	for i := range cfg.Peers {
		g.seeds = append(g.seeds, strings.TrimRight(cfg.Peers[i].Admin, "/"))
	}
	if strings.Join(g.seeds, "") == "" {
		return nil, fmt.Errorf("%w: no node has run on %s, and no peer has an admin_url: give --admin", operator.ErrNoService, cfg.DataDir)
	}
	return g, nil
}

func (g *groupClient) read(ctx context.Context) (*operator.Group, error) {
	return operator.ReadGroup(ctx, g.seeds)
}

// send sends a request to the leader.
func (g *groupClient) send(ctx context.Context, v *operator.Group, path string, in any) error {
	leader := v.Node(v.Leader)
	if leader == nil {
		return fmt.Errorf("%w: %s", errGroupDegraded, v.Text)
	}
	cfg, err := g.s.load()
	if err != nil {
		return err
	}
	c := &operator.Client{URL: leader.AdminURL, HTTP: &http.Client{Timeout: operator.Timeout}}
	if err := g.f.findToken(c, cfg.DataDir); err != nil {
		return err
	}
	_, err = c.Do(ctx, path, in)
	return err
}

// await reads the group until done returns true or within has passed, and returns the last
// state.
func (g *groupClient) await(ctx context.Context, within time.Duration, done func(*operator.Group) bool) (*operator.Group, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last *operator.Group
	for {
		v, err := g.read(limited)
		switch {
		case err == nil && done(v):
			return v, nil
		case err == nil:
			last = v
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return last, ctx.Err()
			}
			if last == nil {
				return nil, fmt.Errorf("%w: no node has answered within %v: %w", operator.ErrNoService, within, err)
			}
			return last, fmt.Errorf("%w: not done within %v: %s", errGroupDegraded, within, last.Text)
		case <-time.After(pollEvery):
		}
	}
}

// clusterCommand has the commands for a group of nodes.
func clusterCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "cluster", Short: "Show and change a group of nodes: status, members, leader",
		Long: "Show and change a group of nodes (journal: raft). The commands read the node on the data folder\n" +
			"and all nodes in peers, so they also work while one of them is down; changes go to the leader\n" +
			"and need an operator's token. docs/cluster.md has procedures.",
		Example: "  blockdesk cluster status",
	})
	f := &operatorFlags{}
	f.add(cmd)
	cmd.AddCommand(clusterStatusCommand(s, f), clusterWaitCommand(s, f), clusterAddCommand(s, f), clusterReplaceCommand(s, f), clusterRemoveCommand(s, f), clusterTransferCommand(s, f), clusterFinalizeCommand(s, f))
	return cmd
}

func clusterStatusCommand(s *settings, f *operatorFlags) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the state of the group and its nodes", Args: cobra.NoArgs,
		Long: "Show in one line the state of the group and how many nodes it can lose, and list its nodes. A\n" +
			"node is in sync if it is in contact with the leader and has applied nearly all committed entries.\n" +
			"The line begins with\n\n" +
			"  well        all voters are in sync\n" +
			"  degraded    not all are in sync, and one more can be lost\n" +
			"  at risk     not all are in sync, and none can be lost\n" +
			"  no leader   nothing is acknowledged\n\n" +
			"A second line names the nodes whose configuration differs from the leader's in keys that must be\n" +
			"the same on all nodes, with the sections. That is not a failure: it happens during a rolling\n" +
			"change.\n\n" +
			"It fails (1) for the last two and while the leader does not serve yet, and (3) if no node answers\nwithin 2 seconds.",
		Example: "  blockdesk cluster status\n  blockdesk cluster status --watch",
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := dialGroup(s, f)
			if err != nil {
				return err
			}
			if watch {
				return g.watch(cmd.Context(), cmd.OutOrStdout())
			}
			v, err := g.read(cmd.Context())
			if err != nil {
				return err
			}
			return showGroup(s, cmd.OutOrStdout(), v)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat every 2 seconds, until Ctrl-C")
	return cmd
}

// showGroup prints a group. It returns an error if the group is unwell, which the printed
// JSON has already.
func showGroup(s *settings, w io.Writer, v *operator.Group) error {
	var err error
	if s.json {
		err = printJSON(w, v)
	} else {
		err = printGroup(w, v)
	}
	switch {
	case err != nil || v.OK:
		return err
	case s.json:
		return printedError{errGroupDegraded}
	}
	return errGroupDegraded // the first line has the reason
}

// watch prints the group repeatedly until ctx ends; as JSON an object a line.
func (g *groupClient) watch(ctx context.Context, w io.Writer) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if v := g.readOrEmpty(ctx); ctx.Err() == nil {
			if err := g.print(w, v); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// print prints the group with the time.
func (g *groupClient) print(w io.Writer, v *operator.Group) error {
	if g.s.json {
		return json.NewEncoder(w).Encode(v)
	}
	if _, err := fmt.Fprintf(w, "%s  ", time.Now().UTC().Format(time.TimeOnly)); err != nil {
		return err
	}
	err := printGroup(w, v)
	fmt.Fprintln(w)
	return err
}

// readOrEmpty reads the group; if no node answers it returns a group without a leader.
func (g *groupClient) readOrEmpty(ctx context.Context) *operator.Group {
	v, err := g.read(ctx)
	if err != nil {
		return &operator.Group{State: operator.GroupNoLeader, Text: "no node answers", Code: codeNoService, Error: err.Error(), ConfigDiffers: map[string][]string{}, Nodes: []operator.Node{}}
	}
	return v
}

// groupRun returns the function of a command that changes or awaits a group and prints it. A
// first argument is the id of a node.
func groupRun(s *settings, f *operatorFlags, do func(context.Context, *groupClient, []string) (*operator.Group, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			if err := checkNodeID(args[0]); err != nil {
				return err
			}
		}
		g, err := dialGroup(s, f)
		if err != nil {
			return err
		}
		v, err := do(cmd.Context(), g, args)
		if err != nil {
			return err
		}
		return showGroup(s, cmd.OutOrStdout(), v)
	}
}

func clusterWaitCommand(s *settings, f *operatorFlags) *cobra.Command {
	var within time.Duration
	cmd := &cobra.Command{
		Use: "wait", Short: "Wait until all voters are in sync", Args: cobra.NoArgs,
		Long: "Wait until a node leads and serves and all voters are in sync, then print the group's status: use\n" +
			"it between two nodes of a rolling upgrade. It fails (1) if that takes longer than --within.",
		Example: "  blockdesk cluster wait --within 5m",
		RunE: groupRun(s, f, func(ctx context.Context, g *groupClient, _ []string) (*operator.Group, error) {
			return g.await(ctx, within, func(v *operator.Group) bool { return v.State == operator.GroupWell })
		}),
	}
	cmd.Flags().DurationVar(&within, "within", 2*time.Minute, "longest wait")
	return cmd
}

func clusterAddCommand(s *settings, f *operatorFlags) *cobra.Command {
	var within time.Duration
	var admin string
	cmd := &cobra.Command{
		Use: "add ID ADDRESS", Short: "Add a node to the group, with a vote once it is in sync", Args: cobra.ExactArgs(2),
		Long: "Add a node, which runs with cluster.join: true and an empty data folder, at the host:port of its\n" +
			"cluster.bind. It gets the log first without a vote, so that the group does not wait for it, and\n" +
			"a vote once it is in sync. If that takes longer than --within it stays without a vote, and the\n" +
			"command fails (1): check the node, and repeat the command to continue. A removed ID must not\n" +
			"return with an empty folder: choose a new one.",
		Example: "  blockdesk cluster add d 10.0.0.4:9700 --node-admin http://10.0.0.4:8090",
		RunE: groupRun(s, f, func(ctx context.Context, g *groupClient, args []string) (*operator.Group, error) {
			if err := g.addSeed(admin); err != nil {
				return nil, err
			}
			return g.add(ctx, args[0], args[1], within)
		}),
	}
	cmd.Flags().DurationVar(&within, "within", 10*time.Minute, "how long the node may take to catch up")
	cmd.Flags().StringVar(&admin, "node-admin", "", "the new node's admin `address`, if no entry of peers has it")
	return cmd
}

// add adds a node without a vote, and then as a voter.
func (g *groupClient) add(ctx context.Context, id, address string, within time.Duration) (*operator.Group, error) {
	type member struct {
		ID      string `json:"id"`
		Address string `json:"address"`
		Voter   bool   `json:"voter"`
	}
	v, err := g.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.send(ctx, v, "/desk/cluster/members", member{id, address, false}); err != nil {
		return nil, err
	}
	v, err = g.await(ctx, within, func(v *operator.Group) bool {
		n := v.Node(id)
		return n != nil && (n.InSync || n.Problem == operator.NotAsked)
	})
	if n := v.Node(id); err == nil && !n.InSync {
		return nil, fmt.Errorf("%w: %s was added and has no vote yet, because its status cannot be read: %s: "+
			"add the entry here and on the node that leads, or repeat the command with --node-admin", errGroupDegraded, id, n.Problem)
	}
	if err != nil {
		if v != nil {
			if n := v.Node(id); n != nil {
				err = fmt.Errorf("%s has no vote yet: %s: %w", id, n.Problem, err)
			}
		}
		return nil, err
	}
	if err := g.send(ctx, v, "/desk/cluster/members", member{id, address, true}); err != nil {
		return nil, err
	}
	return g.await(ctx, memberWait, func(v *operator.Group) bool { n := v.Node(id); return v.OK && n != nil && n.Voter && n.InSync })
}

func clusterReplaceCommand(s *settings, f *operatorFlags) *cobra.Command {
	var within time.Duration
	var admin string
	cmd := &cobra.Command{
		Use: "replace ID NEW_ID ADDRESS", Short: "Replace a lost node, or one that has lost its data", Args: cobra.ExactArgs(3),
		Long: "Remove a node and add another one in its place, which runs with cluster.join: true and an empty\n" +
			"data folder under a new ID, at the host:port of its cluster.bind. A node that has lost its data has\n" +
			"forgotten its votes, so it cannot come back under its ID. The new node gets a vote once it is in\n" +
			"sync. If that takes longer than --within, the command fails (1): check the node, and finish with\n" +
			"`blockdesk cluster add NEW_ID ADDRESS`.",
		Example: "  blockdesk cluster replace c e 10.0.0.3:9700",
		RunE: groupRun(s, f, func(ctx context.Context, g *groupClient, args []string) (*operator.Group, error) {
			if err := checkNodeID(args[1]); err != nil {
				return nil, err
			}
			if args[0] == args[1] {
				return nil, usagef("NEW_ID is the old one: a node that has lost its data needs a new id")
			}
			if err := g.addSeed(admin); err != nil {
				return nil, err
			}
			v, err := g.read(ctx)
			if err != nil {
				return nil, err
			}
			if v.Node(args[0]) != nil {
				if _, err := g.remove(ctx, args[0], false); err != nil {
					return nil, err
				}
			}
			return g.add(ctx, args[1], args[2], within)
		}),
	}
	cmd.Flags().DurationVar(&within, "within", 10*time.Minute, "how long the new node may take to catch up")
	cmd.Flags().StringVar(&admin, "node-admin", "", "the new node's admin `address`, if no entry of peers has it")
	return cmd
}

// addSeed adds a node's admin address to those that are read; "" adds none.
func (g *groupClient) addSeed(admin string) error {
	if admin == "" {
		return nil
	}
	at, err := g.s.adminURL(admin)
	if err == nil {
		g.seeds = append(g.seeds, at)
	}
	return err
}

func clusterFinalizeCommand(s *settings, f *operatorFlags) *cobra.Command {
	return &cobra.Command{
		Use: "finalize", Short: "End an upgrade: use what the new program brings", Args: cobra.NoArgs,
		Long: "End a rolling upgrade from release 0.1.0. Until then the group writes only what the old program\n" +
			"reads, applies its rules, and can go back to it. Afterwards no older program can be a node of the\n" +
			"group. The command refuses unless every node answers and has the new program; the service starts\n" +
			"again in a new term, which clients see as a change of the leader. A group that was begun with this\n" +
			"release is final already.",
		Example: "  blockdesk cluster finalize",
		RunE: groupRun(s, f, func(ctx context.Context, g *groupClient, _ []string) (*operator.Group, error) {
			v, err := g.read(ctx)
			if err != nil {
				return nil, err
			}
			if err := g.send(ctx, v, "/desk/cluster/finalize", struct{}{}); err != nil {
				return nil, err
			}
			return g.await(ctx, memberWait, func(v *operator.Group) bool {
				l := v.Node(v.Leader)
				return v.State != operator.GroupNoService && l != nil && l.Status != nil && l.Status.LogFormat == l.Status.NewestFormat
			})
		}),
	}
}

// memberWait bounds the wait for an accepted change.
const memberWait = 30 * time.Second

func clusterRemoveCommand(s *settings, f *operatorFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Remove a node from the group for good", Args: cobra.ExactArgs(1),
		Long: "Remove a node from the group for good: its ID must not return with an empty folder. A leader hands\n" +
			"over first. The command refuses if the remaining nodes could not acknowledge, unless with\n" +
			"--force. Stop the node and delete its data folder afterwards.",
		Example: "  blockdesk cluster remove c",
		RunE: groupRun(s, f, func(ctx context.Context, g *groupClient, args []string) (*operator.Group, error) {
			return g.remove(ctx, args[0], force)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "even if the rest would not be a majority")
	return cmd
}

func (g *groupClient) remove(ctx context.Context, id string, force bool) (*operator.Group, error) {
	v, err := g.read(ctx)
	if err != nil {
		return nil, err
	}
	if bad := v.RemovalProblem(id); bad != "" && !force {
		return nil, fmt.Errorf("%w: %s; --force removes it nevertheless", errGroupDegraded, bad)
	}
	if v.Leader == id {
		if v, err = g.transfer(ctx, v); err != nil {
			return nil, err
		}
	}
	if err := g.send(ctx, v, "/desk/cluster/members/"+id+"/remove", struct{}{}); err != nil {
		return nil, err
	}
	return g.await(ctx, memberWait, func(v *operator.Group) bool { return v.Leader != "" && v.Node(id) == nil })
}

func clusterTransferCommand(s *settings, f *operatorFlags) *cobra.Command {
	return &cobra.Command{
		Use: "transfer", Short: "Hand the lead to another voter", Args: cobra.NoArgs,
		Long: "Hand the lead to a voter with the complete log, and wait until it serves. Clients are redirected\n" +
			"to it, as at any change of the leader: a request that they repeat with the same ClOrdID or\n" +
			"Idempotency-Key is done once. An orderly stop of the leader does the same.",
		Example: "  blockdesk cluster transfer",
		RunE: groupRun(s, f, func(ctx context.Context, g *groupClient, _ []string) (*operator.Group, error) {
			v, err := g.read(ctx)
			if err != nil {
				return nil, err
			}
			return g.transfer(ctx, v)
		}),
	}
}

// transfer makes another node the leader, and waits until it serves and the others follow.
func (g *groupClient) transfer(ctx context.Context, v *operator.Group) (*operator.Group, error) {
	if err := g.send(ctx, v, "/desk/cluster/transfer", struct{}{}); err != nil {
		return nil, err
	}
	return g.await(ctx, memberWait, v.HandedOver)
}

// checkNodeID refuses a text that cannot be a node's id, before it gets into a URL.
func checkNodeID(text string) error {
	if text == "" || len(text) > quorum.MaxNameBytes || checkCompID(text) != nil {
		return usagef("not the id of a node: want 1 to %d letters, digits, '.', '_' and '-'", quorum.MaxNameBytes)
	}
	return nil
}

// completeNodes completes members.
func completeNodes(s *settings) completer {
	return func(cmd *cobra.Command, _ string) (out []string) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		f := &operatorFlags{}
		if given, err := cmd.Flags().GetString("admin"); err == nil {
			f.admin = given
		}
		g, err := dialGroup(s, f)
		if err != nil {
			return nil
		}
		v, err := g.read(ctx)
		if err != nil {
			return nil
		}
		for i := range v.Nodes {
			out = append(out, cobra.CompletionWithDesc(v.Nodes[i].ID, v.Nodes[i].Address))
		}
		return out
	}
}

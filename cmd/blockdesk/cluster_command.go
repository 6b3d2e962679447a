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
	// lookEvery is how far apart the looks of a command that waits are.
	lookEvery = 300 * time.Millisecond
	// watchEvery is the same of `cluster status --watch`.
	watchEvery = 2 * time.Second
)

// errUnwellGroup is wrapped where a group has no leader or can lose no more node.
var errUnwellGroup = errors.New("the group is not well")

// clusterFlags say how a command reaches the nodes of a group.
type clusterFlags struct{ operatorFlags }

// groupClient looks at a group, and changes it through its leader.
type groupClient struct {
	s     *settings
	f     *clusterFlags
	seeds []string
}

// dial finds where the nodes are, and asks none yet: the address that is given;
// else that of the node on the data folder, and those of peers.
func (f *clusterFlags) dial(s *settings) (*groupClient, error) {
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
		return nil, fmt.Errorf("%w: no node has run on %s, and no peers have an admin_url: give --admin", operator.ErrNoService, cfg.DataDir)
	}
	return g, nil
}

func (g *groupClient) look(ctx context.Context) (*operator.Group, error) {
	return operator.ReadGroup(ctx, g.seeds)
}

// ask has the leader do something.
func (g *groupClient) ask(ctx context.Context, v *operator.Group, path string, in any) error {
	leader := v.Node(v.Leader)
	if leader == nil {
		return fmt.Errorf("%w: %s", errUnwellGroup, v.Text)
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

// await looks until done says so, or within is over; it returns the last look.
func (g *groupClient) await(ctx context.Context, within time.Duration, done func(*operator.Group) bool) (*operator.Group, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last *operator.Group
	for {
		v, err := g.look(limited)
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
			return last, fmt.Errorf("%w: not over within %v: %s", errUnwellGroup, within, last.Text)
		case <-time.After(lookEvery):
		}
	}
}

// clusterCommand looks at and changes a group of nodes.
func clusterCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "cluster", Short: "A group of nodes: how it is, who is in it, who leads",
		Long: "Look at a group of nodes (journal: raft) and change it. The commands ask the node on the data\n" +
			"folder and all that peers name, so they also work while that node is down; changes go to the\n" +
			"leader and need an operator's token. docs/cluster.md has what to do when.",
		Example: "  blockdesk cluster status",
	})
	f := &clusterFlags{}
	f.add(cmd)
	cmd.AddCommand(clusterStatusCommand(s, f), clusterWaitCommand(s, f), clusterAddCommand(s, f), clusterRemoveCommand(s, f), clusterTransferCommand(s, f))
	return cmd
}

func clusterStatusCommand(s *settings, f *clusterFlags) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status", Short: "Say how the group is, and list its nodes", Args: cobra.NoArgs,
		Long: "Say in one line how the group is and how many nodes it can lose, and list its nodes. A node is\n" +
			"level that hears the leader and has judged nearly all that is committed. The line begins with\n\n" +
			"  well        all voters are level\n" +
			"  degraded    not all are, and one more can be lost\n" +
			"  at risk     not all are, and none can be lost\n" +
			"  no leader   nothing is acknowledged\n\n" +
			"A second line names the nodes that are configured differently from the leader, and in what, of\n" +
			"the keys that must be alike on all. That is no failure: a rolling change makes them so.\n\n" +
			"It fails (1) for the last two and while the leader does not serve yet, and (3) where no node\nanswers within 2 seconds.",
		Example: "  blockdesk cluster status\n  blockdesk cluster status --watch",
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := f.dial(s)
			if err != nil {
				return err
			}
			if watch {
				return g.watch(cmd.Context(), cmd.OutOrStdout())
			}
			v, err := g.look(cmd.Context())
			if err != nil {
				return err
			}
			return showGroup(s, cmd.OutOrStdout(), v)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "look again every 2 seconds, until Ctrl-C")
	return cmd
}

// showGroup prints a group; one that is not well is an error, which as JSON has
// told itself.
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
		return toldError{errUnwellGroup}
	}
	return errUnwellGroup // the first line says why
}

// watch prints a look after the other; as JSON an object a line. Its end is that of
// ctx.
func (g *groupClient) watch(ctx context.Context, w io.Writer) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if v := g.glance(ctx); ctx.Err() == nil {
			if err := g.tell(w, v); err != nil {
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

// tell prints one look.
func (g *groupClient) tell(w io.Writer, v *operator.Group) error {
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

// glance is a look that says where no node answers.
func (g *groupClient) glance(ctx context.Context) *operator.Group {
	v, err := g.look(ctx)
	if err != nil {
		return &operator.Group{State: operator.GroupNoLeader, Text: "no node answers", Code: codeNoService, Error: err.Error(), ConfigDiffers: map[string][]string{}, Nodes: []operator.Node{}}
	}
	return v
}

func clusterWaitCommand(s *settings, f *clusterFlags) *cobra.Command {
	var within time.Duration
	cmd := &cobra.Command{
		Use: "wait", Short: "Wait until all voters are level", Args: cobra.NoArgs,
		Long: "Wait until a node leads and serves and all voters are level, then print the group's status: what\n" +
			"to do between two nodes of a rolling upgrade. It fails (1) where that takes longer than --within.",
		Example: "  blockdesk cluster wait --within 5m",
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := f.dial(s)
			if err != nil {
				return err
			}
			v, err := g.await(cmd.Context(), within, func(v *operator.Group) bool { return v.State == operator.GroupWell })
			if err != nil {
				return err
			}
			return showGroup(s, cmd.OutOrStdout(), v)
		},
	}
	cmd.Flags().DurationVar(&within, "within", 2*time.Minute, "how long at most")
	return cmd
}

func clusterAddCommand(s *settings, f *clusterFlags) *cobra.Command {
	var within time.Duration
	var admin string
	cmd := &cobra.Command{
		Use: "add ID ADDRESS", Short: "Add a node to the group, and give it a vote when it has caught up", Args: cobra.ExactArgs(2),
		Long: "Add a node, which runs with cluster.join: true and an empty data folder, at the host:port of its\n" +
			"cluster.bind. It gets the log first without a vote, so that the group does not wait for it, and\n" +
			"a vote when it is level. Where that takes longer than --within it stays without one, and the\n" +
			"command fails (1): look at the node, and give the command again to go on. An ID that was removed\n" +
			"must not come back with an empty folder: take a new one.",
		Example: "  blockdesk cluster add d 10.0.0.4:9700 --node-admin http://10.0.0.4:8090",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNodeID(args[0]); err != nil {
				return err
			}
			g, err := f.dial(s)
			if err != nil {
				return err
			}
			if admin != "" {
				at, err := s.adminURL(admin)
				if err != nil {
					return err
				}
				g.seeds = append(g.seeds, at)
			}
			v, err := g.add(cmd.Context(), args[0], args[1], within)
			if err != nil {
				return err
			}
			return showGroup(s, cmd.OutOrStdout(), v)
		},
	}
	cmd.Flags().DurationVar(&within, "within", 10*time.Minute, "how long the node may take to catch up")
	cmd.Flags().StringVar(&admin, "node-admin", "", "the new node's admin `address`, where no peers entry has it")
	return cmd
}

// add makes a node a member, then a voter.
func (g *groupClient) add(ctx context.Context, id, address string, within time.Duration) (*operator.Group, error) {
	type member struct {
		ID      string `json:"id"`
		Address string `json:"address"`
		Voter   bool   `json:"voter"`
	}
	v, err := g.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.ask(ctx, v, "/desk/cluster/members", member{id, address, false}); err != nil {
		return nil, err
	}
	v, err = g.await(ctx, within, func(v *operator.Group) bool { n := v.Node(id); return n != nil && n.InSync })
	if err != nil {
		if v != nil {
			if n := v.Node(id); n != nil {
				err = fmt.Errorf("%s has no vote yet: %s: %w", id, n.Problem, err)
			}
		}
		return nil, err
	}
	if err := g.ask(ctx, v, "/desk/cluster/members", member{id, address, true}); err != nil {
		return nil, err
	}
	return g.await(ctx, memberWait, func(v *operator.Group) bool { n := v.Node(id); return v.OK && n != nil && n.Voter && n.InSync })
}

// memberWait bounds how long a change is waited for that the group has taken up.
const memberWait = 30 * time.Second

func clusterRemoveCommand(s *settings, f *clusterFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Take a node out of the group, for good", Args: cobra.ExactArgs(1),
		Long: "Take a node out of the group, for good: its ID must not come back with an empty folder. One that\n" +
			"leads hands the lead over first. Where the nodes that would be left could acknowledge nothing\n" +
			"the command refuses it, unless with --force. Stop the node and delete its data folder after it.",
		Example: "  blockdesk cluster remove c",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNodeID(args[0]); err != nil {
				return err
			}
			g, err := f.dial(s)
			if err != nil {
				return err
			}
			v, err := g.remove(cmd.Context(), args[0], force)
			if err != nil {
				return err
			}
			return showGroup(s, cmd.OutOrStdout(), v)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also where the rest would be no majority")
	return cmd
}

func (g *groupClient) remove(ctx context.Context, id string, force bool) (*operator.Group, error) {
	v, err := g.look(ctx)
	if err != nil {
		return nil, err
	}
	if bad := v.RemovalProblem(id); bad != "" && !force {
		return nil, fmt.Errorf("%w: %s; --force does it all the same", errUnwellGroup, bad)
	}
	if v.Leader == id {
		if v, err = g.transfer(ctx, v); err != nil {
			return nil, err
		}
	}
	if err := g.ask(ctx, v, "/desk/cluster/members/"+id+"/remove", struct{}{}); err != nil {
		return nil, err
	}
	return g.await(ctx, memberWait, func(v *operator.Group) bool { return v.Leader != "" && v.Node(id) == nil })
}

func clusterTransferCommand(s *settings, f *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use: "transfer", Short: "Hand the lead to another voter", Args: cobra.NoArgs,
		Long: "Hand the lead to a voter that has the log whole, and wait until it serves. Clients of the leader\n" +
			"are told to go there, as at any change of the leader: what they send again with the same ClOrdID\n" +
			"or Idempotency-Key is done once. Stopping the leader in good order does the same by itself.",
		Example: "  blockdesk cluster transfer",
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := f.dial(s)
			if err != nil {
				return err
			}
			v, err := g.look(cmd.Context())
			if err != nil {
				return err
			}
			if v, err = g.transfer(cmd.Context(), v); err != nil {
				return err
			}
			return showGroup(s, cmd.OutOrStdout(), v)
		},
	}
}

// transfer makes another node lead, and waits until it serves and the others follow.
func (g *groupClient) transfer(ctx context.Context, v *operator.Group) (*operator.Group, error) {
	if err := g.ask(ctx, v, "/desk/cluster/transfer", struct{}{}); err != nil {
		return nil, err
	}
	return g.await(ctx, memberWait, v.HandedOver)
}

// checkNodeID keeps what cannot be a node's id out of a URL.
func checkNodeID(text string) error {
	if text == "" || len(text) > quorum.MaxNameBytes || checkCompID(text) != nil {
		return usagef("this is no id of a node: 1 to %d letters, digits, '.', '_' and '-'", quorum.MaxNameBytes)
	}
	return nil
}

// completeNodes lists the members.
func completeNodes(s *settings) completer {
	return func(cmd *cobra.Command, _ string) (out []string) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		f := &clusterFlags{}
		if given, err := cmd.Flags().GetString("admin"); err == nil {
			f.admin = given
		}
		g, err := f.dial(s)
		if err != nil {
			return nil
		}
		v, err := g.look(ctx)
		if err != nil {
			return nil
		}
		for i := range v.Nodes {
			out = append(out, cobra.CompletionWithDesc(v.Nodes[i].ID, v.Nodes[i].Address))
		}
		return out
	}
}

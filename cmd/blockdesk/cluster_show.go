package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"blockdesk/service/operator"
)

// printGroup prints the state of a group, the nodes that are configured differently, and a
// line a node.
func printGroup(w io.Writer, v *operator.Group) error {
	text := v.Text + "\n"
	if len(v.ConfigDiffers) > 0 {
		text += fmt.Sprintf("configured differently from %s: %s\n", v.ConfigOf, operator.DifferencesText(v.ConfigDiffers))
	}
	if l := v.Node(v.Leader); l != nil && l.Status != nil && l.Status.LogFormat < l.Status.NewestFormat {
		text += fmt.Sprintf("upgrade not finalized: the log has format %d of %d; `blockdesk cluster finalize` once all nodes have the new program\n",
			l.Status.LogFormat, l.Status.NewestFormat)
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tROLE\tVOTE\tIN SYNC\tTERM\tLOG\tCOMMITTED\tAPPLIED\tBEHIND\tLAST CONTACT\tDISK FREE\tUP\tVERSION\tADDRESS\tADMIN\tPROBLEM")
	for i := range v.Nodes {
		n := &v.Nodes[i]
		yes := map[bool]string{true: "yes", false: "no"}
		if n.Status == nil {
			fmt.Fprintf(t, "%s\t-\t%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\t-\t%s\t%s\t%s\n", n.ID, yes[n.Voter], yes[n.InSync], n.Address, dash(n.AdminURL), n.Problem)
			continue
		}
		s := n.Status
		contact := "never"
		if s.ContactMS >= 0 {
			contact = (time.Duration(s.ContactMS) * time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d %%\t%s\t%s\t%s\t%s\t%s\n",
			n.ID, s.Role, yes[n.Voter], yes[n.InSync], s.Term, s.LogIndex, s.CommittedIndex, s.AppliedIndex, n.Behind, contact,
			s.DiskFreePercent, time.Duration(s.UptimeS)*time.Second, s.Version, n.Address, n.AdminURL, dash(n.Problem))
	}
	return t.Flush()
}

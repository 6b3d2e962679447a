// Package config holds the configuration: its keys with their rules (Config), the rules
// of several keys (rules), its sources, and the options of other packages that follow
// from it.
//
// The tags of a field are the rules of its key: name, default, range or words, unit, form
// and help. The checks, `blockdesk config`, completion and docs/configuration.md are made
// from the same tags, so they cannot disagree. Flags override the environment, the
// environment the file, the file the defaults.
//
// An error names the source, the key, the value and what is wanted. Secrets are never
// printed. Nothing here opens a socket; only the files that keys name are read.
package config

import "blockdesk/market"

// Values of keys.
const (
	RoleAll      = "all"
	RoleNode     = "node"
	RoleFollower = "follower"

	journalPebble = "pebble"
	journalRaft   = "raft"

	fanoutNone = "none"
	FanoutNATS = "nats"

	LayoutCPMM      = "raydium_cpmm"
	LayoutVaultPair = "vault_pair"
)

// Config is the configuration. Its fields are the keys of the YAML file, and the tags of a
// field are the rules of its key: see Key. Validation, the defaults, `blockdesk config`,
// completion and docs/configuration.md all read them. A leaf is also set by
// BLOCKDESK_<PATH> in the environment (underscores for dots) and by --set path=value.
// Flags win over the environment, the environment over the file, the file over the
// defaults.
type Config struct {
	DataDir        string          `yaml:"data_dir" default:"data" form:"folder" is:"own" about:"folder of journal and stores"`
	Role           string          `yaml:"role" default:"all" words:"all,node,follower" about:"all: the whole service; node: without WebSocket and stream; follower: reads only"`
	Demo           bool            `yaml:"demo" about:"demo participants, prices and keys; loopback addresses only"`
	DemoHistory    int             `yaml:"demo_history_hours" range:"0 to 72 hours" about:"with demo: hours of simulated trading before the first start; make run has 25"`
	Log            Log             `yaml:"log" about:"on standard error"`
	Listen         Listen          `yaml:"listen" about:"port 0: a free one, in addresses.json of the data folder"`
	URLs           URLs            `yaml:"urls" about:"public URLs that documents print"`
	Durability     Durability      `yaml:"durability" about:"when a command is acknowledged"`
	Engine         Engine          `yaml:"engine"`
	Journal        Journal         `yaml:"journal"`
	Cluster        Cluster         `yaml:"cluster" about:"with journal.kind: raft: this node of the group"`
	Peers          []Peer          `yaml:"peers" range:"0 to 9" about:"the group's nodes, the same everywhere"`
	Fanout         string          `yaml:"fanout" default:"none" words:"none,nats" about:"nats: the leader publishes durable frames to followers"`
	NATS           NATS            `yaml:"nats" about:"with fanout: nats"`
	FIX            FIX             `yaml:"fix"`
	Feed           Feed            `yaml:"feed" about:"WebSocket and event stream"`
	History        History         `yaml:"history" about:"trades and candles"`
	HTTP           HTTP            `yaml:"http" about:"rate limits"`
	Operator       Operator        `yaml:"operator" about:"the service's operator, in documents"`
	Tokens         []Token         `yaml:"tokens" about:"tokens in documents"`
	Risk           Risk            `yaml:"risk" about:"defaults of a participant's limits on an instrument"`
	TrustedProxies []string        `yaml:"trusted_proxies" form:"proxy" is:"own" about:"proxies with a trusted X-Forwarded-For"`
	Instruments    []Instrument    `yaml:"instruments" range:"1 to 10000" about:"more may be added at the end"`
	RFQ            RFQ             `yaml:"rfq" about:"the desk"`
	Prices         Prices          `yaml:"prices" range:"0 to 64" about:"sources of dollar prices, by asset"`
	Chain          Chain           `yaml:"chain" about:"without nodes claims answer CHAIN_UNAVAILABLE"`
	Settle         Settle          `yaml:"settle"`
	Mirror         Mirror          `yaml:"mirror" about:"without pairs nothing is read"`
	Operators      []OperatorToken `yaml:"operators" range:"0 to 128" about:"none: serve makes one"`
	Groups         []Group         `yaml:"groups" range:"0 to 63" about:"groups that split the instruments, the same everywhere"`
	Routing        Routing         `yaml:"routing" about:"between groups"`
	// allInstruments are those of all groups, set by SelectGroup.
	allInstruments []Instrument
}

// Log configures the log on standard error.
type Log struct {
	Level  string `yaml:"level" default:"info" words:"debug,info,warn,error" is:"own" about:"lowest level logged"`
	Format string `yaml:"format" default:"text" words:"text,json" is:"own" about:"text: key=value; json: a JSON object a line"`
}

// Listen holds the addresses of the listeners.
type Listen struct {
	Base  string `yaml:"base" default:"127.0.0.1:8080" form:"listen" is:"own" about:"REST and the board"`
	API   string `yaml:"api" default:"127.0.0.1:8000" form:"listen" is:"own" about:"the API's second address"`
	WS    string `yaml:"ws" default:"127.0.0.1:8081" form:"listen" is:"own" about:"WebSocket"`
	FIX   string `yaml:"fix" default:"127.0.0.1:9878" form:"listen" is:"own" about:"FIX 4.4"`
	Admin string `yaml:"admin" default:"127.0.0.1:8090" form:"listen" is:"own" about:"operators, health, metrics; only /desk/ asks for a token: not for public addresses"`
	Chain string `yaml:"chain" default:"127.0.0.1:8899" form:"listen" is:"own" about:"local chain of --demo"`
}

// URLs holds the public URLs that documents print.
type URLs struct {
	Base   string `yaml:"base_url" form:"URL" about:"REST; empty: the listener's own"`
	API    string `yaml:"api_url" form:"URL" about:"the API's second address"`
	WS     string `yaml:"ws_url" form:"URL" about:"WebSocket"`
	Mirror string `yaml:"mirror_url" form:"URL" about:"public mirror of the RFQ book; empty: base_url"`
	Native string `yaml:"native_url" form:"URL" about:"native backend; empty: base_url"`
}

// Durability says when a command counts as durable.
type Durability struct {
	Mode       string `yaml:"mode" default:"sync" words:"sync,interval,quorum" about:"sync: acknowledged means on disk; interval: written, a power failure may lose interval_ms; quorum: on the disks of a majority"`
	IntervalMS int    `yaml:"interval_ms" default:"5" range:"1 to 1000" unit:"ms" about:"in mode interval"`
}

// Engine sizes the engine.
type Engine struct {
	Book        string `yaml:"book" default:"ladder" words:"ladder,naive" is:"own" about:"naive: slow and obvious, to check against"`
	MaxOrders   int    `yaml:"max_orders" default:"1048576" range:"1 to 16777216" unit:"orders" about:"live orders of an instrument"`
	IngressSize int    `yaml:"ingress_size" default:"16384" range:"64 to 1048576" unit:"commands" is:"own" about:"commands in progress, a power of two"`
	EgressSize  int    `yaml:"egress_size" default:"131072" range:"1024 to 16777216" unit:"events" is:"own" about:"events not taken by all consumers, a power of two"`
	MaxBatch    int    `yaml:"max_batch" default:"1024" range:"1 to 65536" unit:"commands" is:"own" about:"commands of one batch"`
	Wait        string `yaml:"wait" default:"park" words:"park,spin" is:"own" about:"spin: lower latency for a whole core"`
}

// DefaultSnapshotEvery is the default of journal.snapshot_every.
const DefaultSnapshotEvery = 1_000_000

// Journal selects the journal and the interval of its snapshots.
type Journal struct {
	Kind          string `yaml:"kind" default:"pebble" words:"pebble,raft" about:"pebble: this node's own; raft: a group's. 'journal: raft' is short for it"`
	SnapshotEvery uint64 `yaml:"snapshot_every" default:"1000000" unit:"commands" is:"own" about:"commands between snapshots of a single node"`
	KeepSnapshots int    `yaml:"keep_snapshots" default:"3" range:"1 to 100" unit:"snapshots" is:"own" about:"newest snapshots to keep"`
	MaxMiB        int    `yaml:"max_mib" default:"0" range:"0 to 16777216" unit:"MiB" is:"own" about:"commands that a single node keeps, beside its snapshots, which it takes earlier then; 0: no bound"`
	// The free shares apply to a group's node too.
	DiskShedPercent     int `yaml:"disk_shed_percent" default:"20" range:"1 to 99" unit:"%" is:"own" about:"less disk free: of trades and candles of minutes, only the last 48 hours are kept"`
	DiskLowPercent      int `yaml:"disk_low_percent" default:"10" range:"1 to 99" unit:"%" is:"own" about:"less disk free: only cancels are admitted"`
	DiskCriticalPercent int `yaml:"disk_critical_percent" default:"5" range:"1 to 99" unit:"%" is:"own" about:"less disk free: no backups, no FIX message log; at most disk_low_percent"`
	DiskReserveMiB      int `yaml:"disk_reserve_mib" default:"64" range:"0 to 65536" unit:"MiB" is:"own" about:"a file that holds this much of the disk, deleted when less is free; 0: none"`
}

// UnmarshalYAML accepts `journal: raft` for `journal: {kind: raft}`.
func (c *Journal) UnmarshalYAML(decode func(any) error) error {
	if kind := ""; decode(&kind) == nil {
		c.Kind = kind
		return nil
	}
	type keys Journal
	return decode((*keys)(c))
}

// Cluster identifies this process in its raft group and configures the transport
// between the nodes.
type Cluster struct {
	ID          string `yaml:"id" form:"text" is:"own" about:"id of this node in peers"`
	Bind        string `yaml:"bind" form:"host:port" is:"own" about:"where other nodes reach it; empty: its address in peers"`
	Join        bool   `yaml:"join" is:"own" about:"an empty node waits to be added to a group that exists"`
	TimeoutMS   int    `yaml:"timeout_ms" default:"100" range:"20 to 30000" unit:"ms" about:"a leader's silence before an election"`
	TLSCertFile string `yaml:"tls_cert_file" form:"file" needs:"tls_key_file,tls_ca_file" is:"own" about:"PEM; without the three files only loopback addresses"`
	TLSKeyFile  string `yaml:"tls_key_file" form:"file" needs:"tls_cert_file,tls_ca_file" is:"own" about:"its key, PEM"`
	TLSCAFile   string `yaml:"tls_ca_file" form:"file" needs:"tls_cert_file,tls_key_file" is:"own" about:"authority of all nodes' certificates, PEM"`
}

// Peer is one node of the group, with the addresses that its clients use.
type Peer struct {
	ID      string `yaml:"id" form:"1 to 64 letters, digits, dots, dashes, underscores" about:"name of the node, for good"`
	Address string `yaml:"address" form:"host:port" about:"for the other nodes"`
	Base    string `yaml:"base_url" form:"peer URL" about:"where clients find it while it leads"`
	API     string `yaml:"api_url" form:"peer URL" about:"the same of the API"`
	WS      string `yaml:"ws_url" form:"peer URL" about:"the same of the WebSocket"`
	FIX     string `yaml:"fix" form:"host:port" about:"the same of FIX"`
	Admin   string `yaml:"admin_url" form:"peer URL" about:"for operators"`
}

// NATS configures the transport of durable frames to followers.
type NATS struct {
	URLs            []string `yaml:"urls" form:"URLs" not:"embedded" is:"own" about:"your own servers"`
	Embedded        bool     `yaml:"embedded" about:"in the leader's process; not in a group"`
	Listen          string   `yaml:"listen" default:"127.0.0.1:4222" form:"host:port" is:"own" about:"address of the embedded server"`
	Prefix          string   `yaml:"prefix" default:"blockdesk" form:"text" about:"of all subjects; one for each group"`
	User            string   `yaml:"user" form:"text" needs:"password_file" not:"credentials_file" is:"own" about:"with password_file"`
	PasswordFile    string   `yaml:"password_file" form:"file" needs:"user" is:"own" about:"its password"`
	CredentialsFile string   `yaml:"credentials_file" form:"file" is:"own" about:".creds file, in place of user"`
	TLSCAFile       string   `yaml:"tls_ca_file" form:"file" is:"own" about:"authority of the servers' certificates, PEM; empty: no TLS"`
	TLSCertFile     string   `yaml:"tls_cert_file" form:"file" needs:"tls_key_file,tls_ca_file" is:"own" about:"our certificate, PEM, if the servers require one"`
	TLSKeyFile      string   `yaml:"tls_key_file" form:"file" needs:"tls_cert_file" is:"own" about:"its key, PEM"`
	StreamMiB       int      `yaml:"stream_mib" default:"1024" range:"16 to 1048576" unit:"MiB" about:"frames kept for followers that start or fell behind"`
	StreamReplicas  int      `yaml:"stream_replicas" default:"1" range:"1 to 5" unit:"servers" about:"1, 3 or 5"`
	MaxStaleMS      int      `yaml:"max_stale_ms" default:"2000" range:"300 to 600000" unit:"ms" about:"a ready follower is behind by at most this"`
	MaxBehindMS     int      `yaml:"max_behind_ms" default:"10000" range:"300 to 600000" unit:"ms" about:"a follower that is behind for longer serves nothing until it is in sync; at least max_stale_ms"`
}

// FIX configures the FIX gateway.
type FIX struct {
	CompID            string `yaml:"comp_id" default:"BLOCKDESK" form:"text" about:"our CompID"`
	ParticipantsFile  string `yaml:"participants_file" form:"file" is:"own" about:"read again when it changes"`
	MaxSessions       int    `yaml:"max_sessions" default:"256" range:"1 to 10000" unit:"sessions" about:"open at once"`
	MessagesPerSecond int    `yaml:"messages_per_second" default:"500" range:"1 to 1000000" unit:"messages/s" about:"rate of one session"`
	KeepMessages      int    `yaml:"keep_messages" default:"100000" range:"1000 to 100000000" unit:"messages" about:"newest sent messages of a session to keep for a resend"`
	KeepDays          int    `yaml:"keep_days" default:"0" range:"0 to 36500" unit:"days" about:"older messages are deleted, fetched or not; 0: any age"`
	SequenceRoll      string `yaml:"sequence_roll" form:"time of day" about:"time of day, UTC, at which the numbers of all sessions begin at 1 again; empty: never"`
	TLSCertFile       string `yaml:"tls_cert_file" form:"file" needs:"tls_key_file" is:"own" about:"PEM with the chain, read at the start; empty: no TLS"`
	TLSKeyFile        string `yaml:"tls_key_file" form:"file" needs:"tls_cert_file" is:"own" about:"its key, PEM"`
	TLSClientCAFile   string `yaml:"tls_client_ca_file" form:"file" needs:"tls_cert_file,tls_key_file" is:"own" about:"authority of clients' certificates, PEM; empty: none needed"`
	MessageLogDir     string `yaml:"message_log_dir" form:"folder" is:"own" about:"every message of the sessions, without secrets; empty: no log"`
	MessageLogFileMiB int    `yaml:"message_log_file_mib" default:"64" range:"1 to 4096" unit:"MiB" is:"own" about:"largest size of a file; each UTC day has its own"`
	MessageLogFiles   int    `yaml:"message_log_files" default:"16" range:"1 to 10000" unit:"files" is:"own" about:"newest files to keep"`
}

// Feed configures the WebSocket feed.
type Feed struct {
	ConnectionsPerIP int `yaml:"connections_per_ip" default:"10" range:"1 to 100000" unit:"connections" about:"WebSockets and streams of one address"`
	MaxConnections   int `yaml:"max_connections" default:"10000" range:"1 to 1000000" unit:"connections" about:"WebSockets and streams in all"`
}

// History says how long trades and candles are kept.
type History struct {
	TradesDays  int `yaml:"trades_days" default:"90" range:"2 to 36500" unit:"days" about:"how long trades are kept"`
	MinutesDays int `yaml:"minutes_days" default:"90" range:"2 to 36500" unit:"days" about:"how long candles of 1m, 5m and 15m are kept; longer ones: for ever"`
	MaxMiB      int `yaml:"max_mib" default:"0" range:"0 to 16777216" unit:"MiB" about:"trades beyond this are deleted, the oldest first, but for the last 48 hours; 0: no bound"`
}

// HTTP configures the REST gateway.
type HTTP struct {
	MarketDataPerMinute int `yaml:"market_data_per_minute" default:"60" range:"0 to 60000000" unit:"requests/min" about:"reads of a client IP; 0: no limit"`
	MarketDataBurst     int `yaml:"market_data_burst" default:"20" range:"1 to 1000000" unit:"requests" about:"of these at once"`
	PartnerPerMinute    int `yaml:"partner_per_minute" default:"300" range:"0 to 60000000" unit:"requests/min" about:"aggregators' adapters, of a client IP; 0: no limit"`
	PartnerBurst        int `yaml:"partner_burst" default:"60" range:"1 to 1000000" unit:"requests" about:"of these at once"`
	RFQWritesPerMinute  int `yaml:"rfq_writes_per_minute" default:"30" range:"0 to 60000000" unit:"requests/min" about:"quotes, claims and proofs of payment of a client IP; 0: no limit"`
	RFQWritesBurst      int `yaml:"rfq_writes_burst" default:"10" range:"1 to 1000000" unit:"requests" about:"of these at once"`
	DvPPerMinute        int `yaml:"dvp_per_minute" default:"3" range:"0 to 1000" unit:"requests/min" about:"DvP builds and submits together, in any 60 s, of a client IP; 0: no limit"`
	HandshakePerMinute  int `yaml:"handshake_per_minute" default:"10" range:"0 to 60000000" unit:"requests/min" about:"nonces of a client IP; 0: no limit"`
	TokensPerHour       int `yaml:"tokens_per_hour" range:"0 to 3600" unit:"tokens/h" about:"DvP tokens of a client IP, evenly spread; 0: 1 an hour, in a demo 3600. All clients: 262144 in 7 days"`
}

// Operator describes the operator of the service, as GET / shows it.
type Operator struct {
	Name     string            `yaml:"name" default:"blockdesk" form:"text" about:"its name"`
	Contacts map[string]string `yaml:"contacts" form:"kind: address" about:"by kind"`
	GitHub   string            `yaml:"github" form:"URL" about:"GitHub page"`
	Website  string            `yaml:"website" form:"URL" about:"website"`
	Market   string            `yaml:"market_name" default:"blockdesk" form:"text" about:"market's name in listings"`
}

// Token describes one token for documents, beyond its instruments and pairs. All
// fields but the symbol may be empty.
type Token struct {
	Symbol          string `yaml:"symbol" form:"token" is:"unique" about:"as the instruments name it"`
	OnchainSymbol   string `yaml:"onchain_symbol" form:"token name" about:"symbol on the chain, if it differs"`
	Name            string `yaml:"name" form:"token name" about:"empty: the symbol"`
	LogoURI         string `yaml:"logo_uri" form:"token URI" about:"its logo"`
	MetadataURI     string `yaml:"metadata_uri" form:"token URI" about:"its Metaplex metadata"`
	ImageURI        string `yaml:"image_uri" form:"token URI" about:"source of its image"`
	ImageIPFSURI    string `yaml:"image_ipfs_uri" form:"token URI" about:"the same on IPFS"`
	ImageGatewayURL string `yaml:"image_gateway_url" form:"token URI" about:"the same over a gateway"`
	CoinMarketCapID int    `yaml:"coinmarketcap_id" range:"0 to 2147483647" about:"CoinMarketCap id; 0: none"`
}

// Risk holds the default limits, for each participant and instrument.
type Risk struct {
	MaxQty        string `yaml:"max_qty" default:"10000000" unit:"base units" form:"decimal" about:"largest order; empty: any"`
	MaxNotional   string `yaml:"max_notional" default:"10000000" unit:"quote units" form:"decimal" about:"largest value of an order; empty: any"`
	MaxOpenOrders int    `yaml:"max_open_orders" default:"10000" range:"0 to 16777216" unit:"orders" about:"live orders; 0: any"`
	BandBps       int    `yaml:"band_bps" default:"5000" range:"0 to 10000" unit:"bps" about:"how far from the last trade or the mid; 0: no band"`
}

// Instrument describes one instrument in decimal units.
type Instrument struct {
	Symbol          string `yaml:"symbol" form:"symbol" is:"unique" about:"BASE/QUOTE"`
	PriceDecimals   int    `yaml:"price_decimals" range:"0 to 18" unit:"digits" about:"of prices; never changes"`
	QtyDecimals     int    `yaml:"qty_decimals" range:"0 to 18" unit:"digits" about:"of sizes; never changes"`
	Tick            string `yaml:"tick" unit:"quote units" form:"decimal" about:"step of prices; never changes"`
	Lot             string `yaml:"lot" unit:"base units" form:"decimal" about:"step of sizes; never changes"`
	MinQty          string `yaml:"min_qty" unit:"base units" form:"decimal" about:"smallest order"`
	MaxQty          string `yaml:"max_qty" unit:"base units" form:"decimal" about:"largest order"`
	MaxPrice        string `yaml:"max_price" unit:"quote units" form:"decimal" about:"highest price"`
	BookSource      string `yaml:"book_source" words:"matched,mirrored" about:"mirrored: a read-only copy of a market on chain"`
	VolatilityBps   int    `yaml:"volatility_bps" range:"0 to 10000" unit:"bps" about:"an order that would trade further from the reference price begins an auction; 0: never"`
	VolatilityCallS int    `yaml:"volatility_call_s" range:"0 to 86400" unit:"s" about:"how long orders gather then"`
	OpeningCallS    int    `yaml:"opening_call_s" range:"0 to 86400" unit:"s" about:"how long orders gather for an auction at the first start and after a halt; 0: none"`
	ReferencePrice  string `yaml:"reference_price" unit:"quote units" form:"decimal" about:"of auctions until something has traded; empty: none"`
}

// RFQ configures the desk. Units are in the keys' names.
type RFQ struct {
	Enabled     bool `yaml:"enabled" default:"true" about:"false: no desk routes and no operator; the tickets stay as they are"`
	QuoteTTLS   int  `yaml:"quote_ttl_s" default:"15" range:"1 to 3600" unit:"s" about:"how long a quote holds"`
	ClaimTTLS   int  `yaml:"claim_ttl_s" default:"120" range:"1 to 86400" unit:"s" about:"how long a claim waits for payment"`
	LateWindowS int  `yaml:"late_window_s" default:"0" range:"0 to 2592000" unit:"s" about:"no effect since 0.2.0: later payments are refunded"`
	GraceS      int  `yaml:"grace_s" default:"30" range:"0 to 3600" unit:"s" about:"capacity stays reserved this much longer for a payment not final yet"`
	FirmBpsUSDC int  `yaml:"firm_bps_usdc" default:"100" range:"1 to 9999" unit:"bps" about:"price move against the desk after a claim in USDC, beyond which the payment is refunded"`
	FirmBpsSOL  int  `yaml:"firm_bps_sol" default:"150" range:"1 to 9999" unit:"bps" about:"the same of SOL"`
	// The limits of claims without a proof of the wallet's key.
	UnprovenTTLS     int          `yaml:"unproven_ttl_s" default:"45" range:"1 to 86400" unit:"s" about:"claim_ttl_s of a claim without proof of its wallet, until its payment is seen"`
	UnprovenUSDPerIP string       `yaml:"unproven_usd_per_ip" default:"25000" unit:"USD" form:"USD amount" about:"most that a client IP may reserve without proof; 0: proof needed"`
	UnprovenShareBps int          `yaml:"unproven_share_bps" default:"3000" range:"0 to 10000" unit:"bps" about:"limit of all claims without proof together: a share of what claims with proof leave of a tranche and of the inventory"`
	DustUSDC         string       `yaml:"dust_usdc" default:"0.01" unit:"USDC" form:"dust USDC" about:"a payment's surplus above this is due for refund; small transfers: settle.dust_usdc"`
	DustSOL          string       `yaml:"dust_sol" default:"0.0001" unit:"SOL" form:"dust SOL" about:"the same of SOL"`
	FeeBps           int          `yaml:"fee_bps" default:"500" range:"0 to 9999" unit:"bps" about:"fee, included in the payment"`
	WalletClaims     int          `yaml:"wallet_claims" default:"8" range:"1 to 65535" unit:"claims" about:"reserved claims of a wallet"`
	Ladder           []LadderStep `yaml:"ladder" about:"public ladder; a larger fill never has the smaller discount"`
	USDCMint         string       `yaml:"usdc_mint" default:"PLaceho1derUSDCmintxxxxxxxxxxxxxxxxxxxxxxxx" form:"address" about:"mint of USDC; a placeholder"`
	PayTo            PayTo        `yaml:"pay_to" about:"the desk's wallets by rail; empty: not sold for it"`
	SOLPriceUSD      string       `yaml:"sol_price_usd" unit:"USD" form:"USD" about:"dollars a SOL; empty: an operator sets it"`
	SOLMaxAgeS       int          `yaml:"sol_max_age_s" default:"3600" range:"0 to 604800" unit:"s" about:"with an older price nothing is sold; 0: any age"`
	Pairs            []Pair       `yaml:"pairs" about:"pairs sold by tickets; left out: these, if their instruments exist. May be added, not removed"`
}

// LadderStep is the discount of one fill size of the public ladder.
type LadderStep struct {
	FillUSD     int `yaml:"fill_usd" unit:"USD" form:"250, 1000, 25000, 250000, 1000000 or 2500000" is:"unique" about:"fill size"`
	DiscountBps int `yaml:"discount_bps" range:"0 to 9999" unit:"bps" about:"its discount"`
}

// PayTo holds the wallet of each rail. A rail without an address is not sold.
type PayTo struct {
	USDC string `yaml:"USDC" form:"address or none" about:"receives USDC"`
	SOL  string `yaml:"SOL" form:"address or none" about:"receives SOL"`
}

// Pair configures the sale of one instrument by tickets.
type Pair struct {
	Symbol            string   `yaml:"symbol" form:"symbol" is:"unique" about:"one of the instruments"`
	BaseMint          string   `yaml:"base_mint" form:"address" about:"mint of the base asset; a placeholder"`
	BaseDecimals      int      `yaml:"base_decimals" range:"0 to 12" unit:"digits" about:"its decimals"`
	Rails             []string `yaml:"rails" words:"USDC,SOL" range:"1 to 2" is:"unique" about:"rails of payment"`
	PriceSource       string   `yaml:"price_source" words:"operator,book" about:"operator: the anchor; book: the middle of our book"`
	ReferencePriceUSD string   `yaml:"reference_price_usd" unit:"USD" form:"USD" about:"the anchor; empty: nothing is sold until an operator sets it"`
	CorridorBps       int      `yaml:"corridor_bps" range:"1 to 9999" unit:"bps" about:"largest distance of a reference price from the anchor"`
	MaxAgeS           int      `yaml:"max_age_s" range:"0 to 604800" unit:"s" about:"an older anchor sells nothing; 0: any age"`
	Via               string   `yaml:"via" form:"symbol" about:"pair that prices the quote asset; empty: it is a dollar"`
	FirmBpsUSDC       int      `yaml:"firm_bps_usdc" range:"0 to 9999" unit:"bps" about:"overrides rfq.firm_bps_usdc; 0: no"`
	FirmBpsSOL        int      `yaml:"firm_bps_sol" range:"0 to 9999" unit:"bps" about:"overrides rfq.firm_bps_sol; 0: no"`
	Inventory         string   `yaml:"inventory" unit:"base units" form:"decimal" about:"stock to sell in all; empty: an operator sets it"`
}

// Prices are the rules of assets by symbol: SOL, or the base of a pair.
type Prices map[string]PriceRule

// PriceRule names the sources of an asset's dollar price and says which of their prices
// are usable.
type PriceRule struct {
	Sources          []string `yaml:"sources" default:"pyth,operator" words:"pyth,pool,operator" range:"1 to 3" is:"unique" about:"in the order of preference: pyth: price updates on the chain; pool: time-weighted price of a mirrored pool; operator: the price that an operator sets"`
	MaxAgeS          int      `yaml:"max_age_s" default:"60" range:"5 to 86400" unit:"s" about:"an older price of any source is not used"`
	MaxSpreadBps     int      `yaml:"max_spread_bps" default:"100" range:"1 to 9999" unit:"bps" about:"how far apart usable sources may be; beyond it there is no price"`
	MaxConfidenceBps int      `yaml:"max_confidence_bps" default:"50" range:"1 to 9999" unit:"bps" about:"how wide half the confidence interval of a price may be"`
	FeedID           string   `yaml:"feed_id" form:"feed id" about:"of pyth; empty: known for SOL and USDC"`
	Account          string   `yaml:"account" form:"address or none" about:"of pyth: account of the price updates; empty: the one that Pyth sponsors for the feed"`
	Pool             string   `yaml:"pool" form:"symbol" about:"of pool: symbol of a mirrored instrument ASSET/USDC with a pool"`
	PoolWindowS      int      `yaml:"pool_window_s" default:"300" range:"30 to 86400" unit:"s" about:"of pool: window of its average"`
}

// Chain names the Solana nodes of settlement. Without any there is no settlement:
// claims, DvP builds and submissions answer CHAIN_UNAVAILABLE, the rest works.
type Chain struct {
	// RPCURLs may hold secrets, so they are never shown: see upstreams.
	RPCURLs          string `yaml:"rpc_urls" form:"nodes" is:"secret" about:"Solana nodes, the preferred first"`
	TimeoutMS        int    `yaml:"timeout_ms" default:"8000" range:"100 to 60000" unit:"ms" is:"own" about:"a call with all its tries"`
	AttemptTimeoutMS int    `yaml:"attempt_timeout_ms" default:"4000" range:"100 to 60000" unit:"ms" is:"own" about:"one try; at most chain.timeout_ms"`
	SandboxDir       string `yaml:"sandbox_dir" form:"folder" is:"own" about:"the local chain's server; empty: the program's, or internal/sandbox"`
	Network          string `yaml:"network" words:",mainnet,devnet,testnet,local" about:"the nodes' network; empty: the one they are on"`
	TrustSingleNode  bool   `yaml:"trust_single_node" about:"true: a single node of a public network is enough"`
	BlockhashSlots   int    `yaml:"blockhash_slots" default:"150" range:"150 to 100000" unit:"slots" about:"how long a blockhash lives; above 150 on a local chain only"`
}

// Settle configures the settlement of claims. Units are in the keys' names.
type Settle struct {
	KeyFile         string `yaml:"key_file" form:"file" not:"signer_socket" is:"own" about:"the desk's keypair, readable only by the service's user"`
	SignerSocket    string `yaml:"signer_socket" form:"socket" is:"own" about:"or the socket of 'blockdesk signer'"`
	Desk            string `yaml:"desk" form:"address or none" about:"the key's address: another is refused; a signer may then start later"`
	Treasury        string `yaml:"treasury" form:"addresses" about:"our wallets besides rfq.pay_to"`
	Units           int    `yaml:"units" default:"200000" range:"1 to 400000" unit:"compute units" about:"compute limit of our transactions"`
	MicroLamports   int    `yaml:"micro_lamports" default:"5000" range:"0 to 1000000000" unit:"10^-6 lamports" about:"price of a compute unit; a transaction at most 0.001 SOL"`
	ResendMS        int    `yaml:"resend_ms" default:"2000" range:"100 to 30000" unit:"ms" about:"between sends of the same signed bytes"`
	PollMS          int    `yaml:"poll_ms" default:"400" range:"50 to 10000" unit:"ms" about:"between checks of sent transactions"`
	WatchMS         int    `yaml:"watch_ms" default:"5000" range:"100 to 600000" unit:"ms" about:"between searches for unreported payments"`
	ClockToleranceS int    `yaml:"clock_tolerance_s" default:"300" range:"0 to 3600" unit:"s" about:"how far the chain's clock may be behind"`
	DustUSDC        string `yaml:"dust_usdc" default:"1" unit:"USDC" form:"dust USDC" about:"smaller transfers are only counted, unless they pay a claim in full; surplus: rfq.dust_usdc"`
	DustSOL         string `yaml:"dust_sol" default:"0.005" unit:"SOL" form:"dust SOL" about:"the same of SOL"`
}

// Mirror configures the sources of mirrored instruments. A mirrored instrument without
// a pair here shows nothing.
type Mirror struct {
	RPCURLs         string       `yaml:"rpc_urls" form:"nodes" is:"secret" about:"nodes, three of independent operators; empty: chain.rpc_urls"`
	EveryMS         int          `yaml:"every_ms" default:"10000" range:"100 to 600000" unit:"ms" about:"between readings"`
	StaleAfterMS    int          `yaml:"stale_after_ms" default:"30000" range:"100 to 86400000" unit:"ms" about:"older readings are degraded; at least mirror.every_ms"`
	ReachDays       int          `yaml:"reach_days" default:"8" range:"0 to 36500" unit:"days" about:"days of swaps read at first, 8 at least; 0: since the pool's beginning"`
	RecordEveryS    int          `yaml:"record_every_s" default:"21600" range:"1 to 2592000" unit:"s" about:"between recorded snapshots; the newest 1,000 are kept"`
	ClockToleranceS int          `yaml:"clock_tolerance_s" default:"60" range:"1 to 3600" unit:"s" about:"a node with a larger difference from our clock is ignored"`
	Pairs           []MirrorPair `yaml:"pairs" range:"0 to 64" about:"sources of mirrored instruments"`
}

// MirrorPair names the on-chain sources of one mirrored instrument.
type MirrorPair struct {
	Symbol        string     `yaml:"symbol" form:"symbol" is:"unique" about:"one of the instruments, with book_source: mirrored"`
	BaseMint      string     `yaml:"base_mint" form:"address" about:"mint of the base asset"`
	BaseDecimals  int        `yaml:"base_decimals" range:"0 to 19" unit:"digits" about:"its decimals, compared with the mint on chain"`
	QuoteMint     string     `yaml:"quote_mint" form:"address" about:"mint of the quote asset"`
	QuoteDecimals int        `yaml:"quote_decimals" range:"0 to 19" unit:"digits" about:"its decimals"`
	Book          MirrorBook `yaml:"book"`
	Pool          MirrorPool `yaml:"pool"`
	Observed      []Observed `yaml:"observed" about:"token accounts to read as well, 64 at most"`
}

// MirrorBook is an order book on chain.
type MirrorBook struct {
	Layout  string `yaml:"layout" words:",manifest,serum,openbook" about:"empty: no book"`
	Program string `yaml:"program" form:"address or none" about:"empty: mainnet's"`
	Market  string `yaml:"market" form:"address or none" about:"the market's account"`
}

// MirrorPool is a pool on chain.
type MirrorPool struct {
	Layout     string `yaml:"layout" words:",raydium_cpmm,vault_pair" about:"empty: no pool"`
	Program    string `yaml:"program" form:"address or none" about:"of raydium_cpmm; empty: mainnet's"`
	Address    string `yaml:"address" form:"address or none" about:"the pool's account"`
	BaseVault  string `yaml:"base_vault" form:"address or none" about:"of vault_pair"`
	QuoteVault string `yaml:"quote_vault" form:"address or none" about:"of vault_pair"`
	LPMint     string `yaml:"lp_mint" form:"address or none" about:"for documents"`
}

// Observed is a token account that documents describe.
type Observed struct {
	Address string `yaml:"address" form:"address" about:"its account"`
	Role    string `yaml:"role" words:"guarantee_reserve,fee_vault_base,fee_vault_quote,desk_inventory" about:"its role"`
	Label   string `yaml:"label" form:"label" about:"its name in documents"`
}

// OperatorToken is an operator that may use the admin address.
type OperatorToken struct {
	Name        string `yaml:"name" form:"operator name" is:"unique" about:"name of the operator, for good"`
	TokenSHA256 string `yaml:"token_sha256" form:"SHA-256" is:"secret" about:"SHA-256 of the operator's token"`
}

// Group is a set of processes with an engine and a journal of their own, and the
// instruments that they serve. All processes of all groups have the same list.
type Group struct {
	Name        string      `yaml:"name" form:"group name" is:"unique" about:"of the group"`
	Number      int         `yaml:"number" range:"1 to 63" is:"unique" about:"is in the ids that the group makes; never changes"`
	Instruments []string    `yaml:"instruments" form:"list of symbols" about:"its instruments; more may be added at the end"`
	PayTo       PayTo       `yaml:"pay_to" about:"replaces rfq.pay_to: each group has its own wallets"`
	Nodes       []GroupNode `yaml:"nodes" range:"1 to 9" about:"its processes"`
}

// GroupNode holds the addresses of one process of a group, for other groups and for
// clients.
type GroupNode struct {
	Base string `yaml:"base_url" form:"http" about:"where other groups reach listen.base"`
	API  string `yaml:"api_url" form:"http" about:"where other groups reach listen.api"`
	WS   string `yaml:"ws_url" form:"ws" about:"where clients reach listen.ws"`
	FIX  string `yaml:"fix" form:"FIX address" about:"where clients reach listen.fix"`
}

// Routing names the group of this process and limits its requests to other groups.
type Routing struct {
	Group      string `yaml:"group" form:"name" about:"group of this process"`
	SecretFile string `yaml:"secret_file" form:"file of hexadecimal digits" is:"own" about:"32 to 64 bytes, the same for the gateways of all groups"`
	TimeoutMS  int    `yaml:"timeout_ms" default:"8000" range:"100 to 60000" unit:"ms" about:"a request to another group, with all its tries"`
	MaxOpen    int    `yaml:"max_open" default:"256" range:"1 to 10000" unit:"requests" about:"requests in progress to one group; one more is answered OVERLOADED"`
}

// Mints that no chain has, so that a configuration is complete before there are real
// ones. Nothing can be paid or delivered with them.
const (
	placeholderPrefix = "PLaceho1der"

	PlaceholderUSDC  = "PLaceho1derUSDCmintxxxxxxxxxxxxxxxxxxxxxxxx"
	PlaceholderSLUSD = "PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx"
	Placeholder92C   = "PLaceho1der92Cmintxxxxxxxxxxxxxxxxxxxxxxxxx"
)

// Default returns the configuration without a file, environment or flags.
func Default() Config {
	cfg := Config{
		Peers: []Peer{}, Tokens: []Token{}, Operators: []OperatorToken{}, Groups: []Group{},
		NATS: NATS{URLs: []string{}}, Operator: Operator{Contacts: map[string]string{}}, Mirror: Mirror{Pairs: []MirrorPair{}}, Prices: Prices{},
		RFQ: RFQ{
			Ladder: []LadderStep{{250, 0}, {1000, 25}, {25_000, 75}, {250_000, 150}, {1_000_000, 250}, {2_500_000, 400}},
			Pairs:  DefaultPairs(),
		},
	}
	for _, symbol := range []string{"SLUSD/USDC", "92C/SLUSD"} {
		cfg.Instruments = append(cfg.Instruments, Instrument{
			Symbol: symbol, PriceDecimals: 6, QtyDecimals: 6,
			Tick: "0.000001", Lot: "0.000001", MinQty: "0.01",
			MaxQty: "100000000", MaxPrice: "1000000", BookSource: "matched",
		})
	}
	for path, leaf := range cfg.Leaves() {
		if text := keysByPath[path].Default; text != "" {
			if err := setLeaf(leaf, text); err != nil {
				panic(path + ": " + err.Error()) // a wrong tag
			}
		}
	}
	return cfg
}

// DefaultPairs returns the pairs of a configuration without rfq.pairs.
func DefaultPairs() []Pair {
	pair := func(symbol, mint, source, via string) Pair {
		return Pair{
			Symbol: symbol, BaseMint: mint, BaseDecimals: 6, Rails: []string{"USDC", "SOL"}, PriceSource: source,
			CorridorBps: 1000, MaxAgeS: 3600, Via: via,
		}
	}
	return []Pair{
		pair("SLUSD/USDC", PlaceholderSLUSD, "operator", ""),
		pair("92C/SLUSD", Placeholder92C, "book", "SLUSD/USDC"),
	}
}

// byRail returns the wallets by rail; empty: the rail is not sold.
func (p PayTo) byRail() map[market.Rail]string {
	return map[market.Rail]string{market.RailUSDC: p.USDC, market.RailSOL: p.SOL}
}

package solana

// IsBuiltIn reports whether an address is that of a program or a sysvar that every cluster
// has, or one whose key nobody has: it signs nothing, and what is sent to it is lost. Its
// programs are those of the runtime and those that this package names.
func IsBuiltIn(a Address) bool {
	switch a {
	case SystemProgram, TokenProgram, Token2022Program, AssociatedTokenProgram, MemoProgram, MemoV1Program,
		ComputeBudgetProgram, NativeMint, ManifestProgram, SerumProgram, OpenBookProgram, OpenBookV2Program,
		RaydiumCPMMProgram, PythReceiverProgram, PythPushOracleProgram, ClockSysvar, SysvarOwner:
		return true
	}
	switch Text(a) {
	case "BPFLoader1111111111111111111111111111111111", "BPFLoader2111111111111111111111111111111111",
		"BPFLoaderUpgradeab1e11111111111111111111111", "LoaderV411111111111111111111111111111111111",
		"NativeLoader1111111111111111111111111111111", "Config1111111111111111111111111111111111111",
		"Stake11111111111111111111111111111111111111", "StakeConfig11111111111111111111111111111111",
		"Vote111111111111111111111111111111111111111", "AddressLookupTab1e1111111111111111111111111",
		"Ed25519SigVerify111111111111111111111111111", "KeccakSecp256k11111111111111111111111111111",
		"Secp256r1SigVerify1111111111111111111111111", "ZkE1Gama1Proof11111111111111111111111111111",
		"Feature111111111111111111111111111111111111", "1nc1nerator11111111111111111111111111111111",
		"SysvarEpochSchedu1e111111111111111111111111", "SysvarFees111111111111111111111111111111111",
		"Sysvar1nstructions1111111111111111111111111", "SysvarRecentB1ockHashes11111111111111111111",
		"SysvarRent111111111111111111111111111111111", "SysvarRewards111111111111111111111111111111",
		"SysvarS1otHashes111111111111111111111111111", "SysvarS1otHistory11111111111111111111111111",
		"SysvarStakeHistory1111111111111111111111111", "SysvarEpochRewards1111111111111111111111111",
		"SysvarLastRestartS1ot1111111111111111111111":
		return true
	}
	return false
}

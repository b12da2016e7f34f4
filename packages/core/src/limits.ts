/** Sizes that the wire, the store and the workflows agree on. Durations stand in the config table. */
export const limits = {
  /** Children of one ensemble: a parent's history stays far under Temporal's limits. */
  maxChildren: 50,
  /** A prompt, in bytes; it travels as a blob. */
  maxPromptBytes: 1 << 20,
  /** A prompt that is a word of a command line, in bytes: Linux allows 128 KiB, with what stands around it. */
  maxOperandBytes: 100 << 10,
  /** One argument of a workflow or an activity, in bytes (design §3: Temporal carries ids, hashes and sizes). */
  maxArgumentBytes: 16 << 10,
  /** One request message of the API, in bytes. */
  maxMessageBytes: 4 << 20,
  /** Payloads of an event above this become blobs (design §7), in bytes. */
  maxInlineEventBytes: 32 << 10,
  /** Deltas are joined until this many bytes (design §7). */
  coalesceBytes: 16 << 10,
  /** Deltas are joined for this long at most, in milliseconds (design §7). */
  coalesceMs: 25,
  /** Shell output of one call that stays inline: the head and the tail, in bytes each; all of it is a blob. */
  shellHeadBytes: 64 << 10,
  shellTailBytes: 64 << 10,
  /** What is stored of the output of one call, in bytes: a long build's, and no more than a disk can take from many. */
  maxShellOutputBytes: 64 << 20,
  /** One captured file, in bytes; a larger one is skipped with an event. */
  maxFileBytes: 512 << 20,
  /** What one capture may bring of the agent's own commits and staged files, in bytes. */
  maxGitStateBytes: 512 << 20,
  /** Sandboxes lost within one turn before the agent ends in ERROR `sandbox_lost` (design §4). */
  maxRestarts: 3,
  /** Boots of a sandbox before `boot_timeout` or `setup_failed`. */
  maxBoots: 3,
  /** Turns that wait for one agent: its state, with all of them, stays an argument of Temporal's (some 200 bytes each). */
  maxWaitingTurns: 64,
  /** Update ids that an agent remembers, beyond those still queued. */
  maxSeenRequests: 200,
  /** Page size of lists. */
  defaultPageSize: 50,
  maxPageSize: 1000,
} as const

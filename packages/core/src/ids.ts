/** An agent's id: `bc-` and a version 7 UUID ("background composer" in seed 001). */
export type AgentId = `bc-${string}`
/** An ensemble's id: `en-` and a version 7 UUID. */
export type EnsembleId = `en-${string}`
/** A grind's id: `gr-` and a version 7 UUID. */
export type GrindId = `gr-${string}`
/** What has a run log of its own. */
export type LogId = AgentId | EnsembleId
/** `sha256_` and 64 lower-case hex digits: what a blob is called in text (seed 003). On the wire it is the 32 raw bytes. */
export type BlobId = `sha256_${string}`

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
const patterns = {
  agent: new RegExp(`^bc-${uuid}$`),
  ensemble: new RegExp(`^en-${uuid}$`),
  blob: /^sha256_[0-9a-f]{64}$/,
}

export const isAgentId = (text: string): text is AgentId => patterns.agent.test(text)
export const isEnsembleId = (text: string): text is EnsembleId => patterns.ensemble.test(text)
export const isBlobId = (text: string): text is BlobId => patterns.blob.test(text)

/**
 * A version 7 UUID (RFC 9562): 48 bits of `unixMs`, the rest from `random` (10 bytes at least). Pure, so that ids can also be
 * made inside a workflow from its own random source.
 */
export function uuidV7(unixMs: number, random: Uint8Array): string {
  const bytes = new Uint8Array(16)
  let rest = unixMs
  for (let index = 5; index >= 0; index -= 1) {
    bytes[index] = rest % 256
    rest = Math.floor(rest / 256)
  }
  bytes.set(random.subarray(0, 10), 6)
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

export const agentId = (unixMs: number, random: Uint8Array): AgentId => `bc-${uuidV7(unixMs, random)}`
export const ensembleId = (unixMs: number, random: Uint8Array): EnsembleId => `en-${uuidV7(unixMs, random)}`

/** The first turn's id follows from the agent's, so that a repeated start cannot make a second one. */
export const firstTurnId = (id: AgentId): string => `tn-${id.slice('bc-'.length)}`

/** Temporal workflow ids (design §5). */
export const agentWorkflowId = (id: AgentId): string => `agent/${id}`
export const ensembleWorkflowId = (id: EnsembleId): string => `ensemble/${id}`

/** The task queue of workflows and of activities that any worker may run. */
export const sharedTaskQueue = 'tutti'
/** The task queue of one host's sandboxes: their activities must run where the sandbox is. */
export const hostTaskQueue = (host: string): string => `tutti-host-${host}`

/** Refs in the mirror, all below `refs/tutti`. */
export const mirrorRefs = {
  /** The newest checkpoint of an agent. */
  checkpoint: (id: AgentId): string => `refs/tutti/agents/${id}/checkpoint`,
  /** The commit that an ensemble's children start from. */
  base: (id: LogId): string => `refs/tutti/base/${id}`,
  /** Whether a ref, once set, never moves. */
  isPinned: (ref: string): boolean => ref.startsWith('refs/tutti/base/'),
  /** The combined commit of an ensemble. */
  synthesis: (id: EnsembleId): string => `refs/tutti/ensembles/${id}/synthesis`,
}

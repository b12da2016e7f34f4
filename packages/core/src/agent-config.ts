import type { BlobId } from './ids.ts'

/** Limits of one sandbox. Bytes, counts, and percent of one core. */
export interface SandboxLimits {
  readonly memoryBytes: number
  readonly pids: number
  readonly cpuPercent: number
  readonly diskBytes: number
  readonly files: number
  readonly fileBytes: number
}

/** How an agent is isolated and what it may reach. */
export interface SandboxPolicy {
  readonly isolation: 'bubblewrap' | 'none'
  readonly allowHosts: readonly string[]
  readonly allowNetwork: boolean
  /** `NAME` is resolved on the worker from its own environment; a literal is given in `envValues`. */
  readonly envNames: readonly string[]
  readonly envValues: Readonly<Record<string, string>>
  /** Host paths, mounted read-only under the same path. */
  readonly mounts: readonly string[]
  readonly limits: SandboxLimits
}

/**
 * Everything about an agent that does not change over its life. Stored as a JSON blob; workflows carry its id only, and
 * activities load it.
 */
export interface AgentConfig {
  readonly version: 1
  /** The registered name of a local repository, or a URL. */
  readonly repository: string
  /** Branch, tag or commit to start from; empty means the default branch. */
  readonly ref: string
  /** As in `--agent`. */
  readonly agentSpec: string
  readonly promptSuffix: string
  readonly setupCommand: string
  readonly readyTimeoutMs: number
  readonly checkCommand: string
  readonly checkTimeoutMs: number
  readonly turnTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly onQuestion: 'wait' | 'fail' | 'default'
  readonly questionTimeoutMs: number
  readonly sandbox: SandboxPolicy
}

/** What a pull request is made of. */
export interface DeliveryPlan {
  readonly mode: 'ready' | 'draft' | 'none'
  /** Empty means a name derived from the ensemble's or agent's id. */
  readonly branch: string
  readonly title: string
  /** The target branch; empty means the repository's default branch. */
  readonly base: string
}

/** The parts of an ensemble that its activities need; a JSON blob like {@link AgentConfig}. */
export interface EnsembleConfig {
  readonly version: 1
  readonly repository: string
  readonly ref: string
  readonly promptBlobId: BlobId
  readonly strategy: string
  readonly checkCommand: string
  readonly checkTimeoutMs: number
  readonly sandbox: SandboxPolicy
  readonly setupCommand: string
  readonly readyTimeoutMs: number
  readonly delivery: DeliveryPlan
  /** Limit of the whole ensemble; absent: the setting `ensemble.timeout`. */
  readonly timeoutMs?: number
}

import type { AgentConfig } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'

/** A command that the agent server runs inside the sandbox. */
export interface HostExecRequest {
  readonly argv: readonly string[]
  /** Relative to the workspace; default its root. */
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  /** Ends the whole process group after this many milliseconds. Default: no limit but the turn's. */
  readonly timeoutMs?: number
}

export type HostExecOutput = { readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }

export interface HostExecExit {
  readonly code: number | null
  readonly signal?: string
  readonly timedOut: boolean
}

/** What an agent may do in its sandbox: everything goes through the agent server. Implemented by the agent server's client. */
export interface AgentHost {
  readonly workdir: string
  readonly home: string
  /** Streams output; the return value is the exit. Aborting ends the process group: SIGTERM, then SIGKILL after `stop.grace`. */
  exec(request: HostExecRequest, signal: AbortSignal): AsyncGenerator<HostExecOutput, HostExecExit>
  /** Paths are relative to the workspace and must stay inside it. @throws TuttiError `not_found`, `invalid_argument`. */
  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>
  writeFile(path: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>
  /**
   * Call after every tool call, before its result is released: every file that changed is in the store and in the log when this
   * resolves (design §8).
   */
  toolEnded(signal: AbortSignal): Promise<void>
  /**
   * What the agent has to be told before its next step: files that the user has changed, a sandbox that was lost and made again; empty
   * when there is nothing. Given once: ask for it only to hand it on.
   */
  news(): string
}

export interface OpenSession {
  readonly bcId: string
  readonly config: AgentConfig
  readonly host: AgentHost
  /** What {@link AgentSession.exportSession} gave last, when the agent had a session before. */
  readonly exported?: Uint8Array
}

export interface TurnRequest {
  readonly turnId: string
  readonly prompt: string
  /** The turn was cut off before and goes on: its work so far is in the workspace, its session was imported. */
  readonly continued: boolean
  /**
   * What the agent must know before it goes on with `prompt`, with the space behind it; also when it knows the prompt already. It is the
   * same in every attempt: an agent that has it in its session goes on from there.
   */
  readonly notice?: string
}

export interface TurnOutcome {
  readonly outcome: 'completed' | 'failed'
  /** For `failed`: what went wrong, for a person; at most 4 KiB. */
  readonly detail?: string
  /** Last words of the agent; at most 2 KiB. */
  readonly summary?: string
}

/** One agent at work in one sandbox. */
export interface AgentSession {
  /** The brain that thinks, as it names itself in `turn_started`; for example `scripted`. */
  readonly brain?: string
  /**
   * Works on one prompt until the agent stops. Events come while they happen. Aborting stops the agent; the generator then ends
   * by throwing TuttiError `cancelled`.
   */
  runTurn(turn: TurnRequest, signal: AbortSignal): AsyncGenerator<TaskEvent, TurnOutcome>
  /** Answers an open `agent_question`. @throws TuttiError `not_found` when that question is not open. */
  answer(questionId: string, text: string): void
  /** Bytes that let a later session go on from here; empty when the agent keeps none. */
  exportSession(signal: AbortSignal): Promise<Uint8Array>
  close(signal: AbortSignal): Promise<void>
}

/** Brings one kind of agent to work (design §6). */
export interface AgentAdapter {
  /** The kind in an agent spec: `command`, `embedded`. */
  readonly kind: string
  open(request: OpenSession, signal: AbortSignal): Promise<AgentSession>
}

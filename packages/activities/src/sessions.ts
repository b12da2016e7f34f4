import type { AgentSession } from '@tutti/agent'
import type { AgentServer } from '@tutti/agent-server'
import type { AgentConfig, AgentId, BlobId, Interruption } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { RecoveryEvent } from '@tutti/protocol'
import type { Sandbox } from '@tutti/sandbox'
import type { AgentScope } from './contract.ts'
import { sandboxLost } from './fail.ts'
import type { RunLogWriter } from './run-log-writer.ts'
import type { SessionWorkspace } from './session-workspace.ts'

/** An agent's sandbox life on this host, from provisioning to release. */
export interface HostSession {
  readonly bcId: AgentId
  readonly owner: string
  readonly incarnation: number
  readonly config: AgentConfig
  readonly sandbox: Sandbox
  readonly server: AgentServer
  readonly mirror: Mirror
  readonly log: RunLogWriter
  readonly workspace: SessionWorkspace
  readonly baseCommit: string
  /** Aborts everything that belongs to this session. */
  readonly controller: AbortController
  agent?: AgentSession
  /** What the agent exported last, in this life or before it. */
  exported: BlobId | undefined
  /** What the agent said last; kept for its attempt. */
  summary: string
  /** Somebody had the workspace put back to this offset, and the agent is still to be told. */
  putBackTo: string | undefined
  /** The current turn, or the last one. */
  turnId: string | undefined
  /** When its work has to move, since the sandbox comes to its end; milliseconds since the epoch. */
  readonly moveAt: number | undefined
  /** Why its work goes on elsewhere. */
  leaves: Exclude<Interruption, 'lost'> | undefined
  /** A turn runs, and captures by itself. */
  inTurn: boolean
  /** Nothing has run since the last capture: the workspace can only be what that was. */
  quiet: boolean
  /** Log position at which the current turn began: its commands come after it. */
  turnFrom: number
  /** The current turn was ended from outside: its sandbox has little time left to answer. */
  stopped: boolean
  /** Paths that the user has changed and the agent has not been told of. */
  readonly untold: Set<string>
  /** How its sandbox came to take the place of another one, while the agent has not been told of it. */
  recovery: RecoveryEvent | undefined
  /** The sandbox did not answer and was killed; the next turn needs another one. */
  killed: boolean
}

/** The sandbox lives on this host. In memory only: a local sandbox dies with its worker, and recovery is the way back. */
export interface Sessions {
  /** @throws ApplicationFailure `sandbox_lost` when that life is over. */
  get(scope: Pick<AgentScope, 'bcId' | 'incarnation'>): HostSession
  find(bcId: AgentId): HostSession | undefined
  add(session: HostSession): void
  remove(session: HostSession): void
  all(): readonly HostSession[]
}

export function createSessions(): Sessions {
  const sessions = new Map<AgentId, HostSession>()
  return {
    get({ bcId, incarnation }) {
      const session = sessions.get(bcId)
      if (!session || session.incarnation !== incarnation)
        throw sandboxLost(`The sandbox of ${bcId} is not on this host any more.`)
      return session
    },
    find: (bcId) => sessions.get(bcId),
    add: (session) => void sessions.set(session.bcId, session),
    remove(session) {
      if (sessions.get(session.bcId) === session) sessions.delete(session.bcId)
    },
    all: () => [...sessions.values()],
  }
}

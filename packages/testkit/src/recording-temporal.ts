import type { TemporalGateway } from '@tutti/api'
import {
  TuttiError,
  agentStateKey,
  isAtRest,
  isRejection,
  reduceAgent,
  turnPosition,
  type AgentId,
  type AgentState,
  type Reason,
} from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { SqliteStore } from '@tutti/store'
import type { CloudAgentInput, CommandRequest, ParallelAgentsInput } from '@tutti/workflows'

/** Stands in for Temporal in tests of the API alone: agents obey the real state machine, and work only when the test says so. */
export interface RecordingTemporal extends TemporalGateway {
  readonly started: { readonly agents: CloudAgentInput[]; readonly ensembles: ParallelAgentsInput[] }
  readonly commands: { readonly bcId: AgentId; readonly request: CommandRequest }[]
  readonly stopped: string[]
  /** While set, every call fails with it. */
  down: TuttiError | undefined
  /** While set, a delivery ends at once, with nothing to deliver. */
  nothingToDeliver: boolean
  /** While set, a recovery ends at once, without a sandbox. */
  noSandboxes: boolean
  /** What an agent's workflow would do when its turn has ended. */
  endTurn(bcId: AgentId, reason: Reason, failed?: boolean): Promise<void>
  /** Puts an agent into a state, with its event in the log. */
  enter(bcId: AgentId, state: AgentState): Promise<void>
  /** Appends events to an agent's log, as its turn would. */
  emit(bcId: AgentId, events: readonly RunEvent[]): Promise<void>
}

const signal = new AbortController().signal

export function createRecordingTemporal(
  { eventLog, catalog }: SqliteStore,
  owner: string,
): RecordingTemporal {
  const states = new Map<AgentId, AgentState>()
  const sequences = new Map<AgentId, number>()

  const stateOf = async (bcId: AgentId) =>
    states.get(bcId) ?? (await catalog.agents.get(owner, bcId, signal)).state

  async function emit(bcId: AgentId, events: readonly RunEvent[]): Promise<number> {
    const sequence = (sequences.get(bcId) ?? 0) + 1
    sequences.set(bcId, sequence)
    const producer = { id: 'workflow/test', epoch: 0, sequence }
    return (await eventLog.append(bcId, producer, events.map(encodeRunEvent), signal)).last
  }

  async function enter(bcId: AgentId, state: AgentState): Promise<void> {
    const before = states.get(bcId)
    states.set(bcId, state)
    const { current } = state
    const begins = current && current.turnId !== before?.current?.turnId
    const logSequence = await emit(bcId, [
      ...(begins
        ? [
            {
              type: 'user_message',
              turnId: current.turnId,
              blobId: current.promptBlobId,
              source: current.source,
            } as const,
          ]
        : []),
      {
        type: 'status',
        status: state.status,
        paused: state.paused,
        queued: state.queue.length,
        hadSandbox: true,
        ...(state.reason ? { reason: state.reason } : {}),
      },
    ])
    await catalog.agents.project(bcId, { state, hadSandbox: true, logSequence }, signal)
  }

  const temporal: RecordingTemporal = {
    started: { agents: [], ensembles: [] },
    commands: [],
    stopped: [],
    down: undefined,
    nothingToDeliver: false,
    noSandboxes: false,

    async startAgent(input) {
      if (temporal.down) throw temporal.down
      if (states.has(input.bcId)) return
      temporal.started.agents.push(input)
      if (!input.firstTurn) return
      const state = reduceAgent(input.state, { type: 'follow_up', turn: input.firstTurn })
      if (!isRejection(state)) await enter(input.bcId, state)
    },
    startEnsemble: (input) => {
      if (temporal.down) return Promise.reject(temporal.down)
      if (!temporal.started.ensembles.some(({ ensembleId }) => ensembleId === input.ensembleId)) {
        temporal.started.ensembles.push(input)
      }
      return Promise.resolve()
    },
    async agentCommand({ bcId }, request) {
      if (temporal.down) throw temporal.down
      temporal.commands.push({ bcId, request })
      const before = await stateOf(bcId)
      const after = reduceAgent(before, request.command)
      if (isRejection(after)) throw new TuttiError('failed_precondition', after.message)
      if (after !== before) await enter(bcId, after)
      if (request.command.type === 'deliver' && temporal.nothingToDeliver) {
        await emit(bcId, [{ type: 'delivery', requestId: request.requestId, outcome: 'nothing_to_deliver' }])
      }
      if (request.command.type === 'recover' && temporal.noSandboxes) {
        await emit(bcId, [{ type: 'recovery_failed', requestId: request.requestId, reason: 'boot_timeout' }])
      }
      const turnId = 'turn' in request.command ? request.command.turn.turnId : ''
      return {
        state: agentStateKey(after),
        position: turnId === '' ? -1 : turnPosition(after, turnId),
        turnId,
        endingTurnId: after.ending && before.current ? before.current.turnId : '',
      }
    },
    stopEnsemble(ensembleId) {
      if (temporal.down) return Promise.reject(temporal.down)
      temporal.stopped.push(ensembleId)
      return Promise.resolve()
    },
    ready: () => (temporal.down ? Promise.reject(temporal.down) : Promise.resolve()),

    async endTurn(bcId, reason, failed = false) {
      const before = await stateOf(bcId)
      if (before.current) await emit(bcId, [{ type: 'turn_ended', turnId: before.current.turnId, reason }])
      const after = reduceAgent(before, { type: 'turn_ended', reason, failed })
      if (!isRejection(after)) await enter(bcId, after)
      if (isAtRest(await stateOf(bcId))) states.delete(bcId)
    },
    enter,
    emit: async (bcId, events) => void (await emit(bcId, events)),
  }
  return temporal
}

import type { AgentConfig } from '@tutti/core'
import { isAtRest, limits, TuttiError } from '@tutti/core'
import { encodeRunEvent, type ChildView, type RunEvent } from '@tutti/protocol'
import type { AgentRow } from '@tutti/store'
import { appendToEnsemble } from './append-to-ensemble.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, RecordState, WorkflowEvent } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { readOpenCalls } from '@tutti/workspace/log'
import { saveAgentState } from './save-agent-state.ts'

/**
 * Appends a workflow's events to the agent's log and writes the projection that belongs to them, so that log, list and get agree
 * (design §7). A child's state goes to its ensemble's log as well. Idempotent by (run, sequence).
 */
export function createRecordState(deps: ActivityDeps, configs: ConfigBlobs): Activities['recordState'] {
  const { eventLog, catalog } = deps
  return (input) =>
    orFail(async () => {
      const { signal } = new AbortController()
      const config = await configs.agent(input.configBlobId, signal)
      const events = [
        ...(await cutOffCalls(deps, input, signal)),
        ...(await Promise.all(
          input.events.map((event) => toRunEvent(event, input, config, configs, signal)),
        )),
      ]
      const producer = { id: `workflow/${input.runId}`, epoch: 0, sequence: input.sequence }
      const { last } = await eventLog.append(input.bcId, producer, events.map(encodeRunEvent), signal)
      const { state, turns, incarnation, hadSandbox } = input
      await catalog.agents.project(
        input.bcId,
        { logSequence: last, state, turns, incarnation, hadSandbox },
        signal,
      )
      await saveState(deps, input, last, signal)
      // The end of a child is shown once, with its attempt.
      if (!input.ensembleId || isAtRest(state) || !input.events.some((event) => event.type === 'status'))
        return
      const child = childView(await catalog.agents.get(input.owner, input.bcId, signal))
      const once = `child/${input.bcId}/${input.runId}/${input.sequence}`
      await appendToEnsemble(eventLog, input.ensembleId, once, { type: 'child', child }, signal)
    })
}

/** A turn that is stopped while it has no sandbox leaves the calls open that the lost one had begun; nobody else will end them. */
async function cutOffCalls(
  { eventLog }: ActivityDeps,
  { bcId, events }: RecordState,
  signal: AbortSignal,
): Promise<RunEvent[]> {
  const worked = ['completed', 'nothing_to_deliver']
  if (!events.some((event) => event.type === 'turn_ended' && !worked.includes(event.reason))) return []
  const open = await unlessLost(() => readOpenCalls(eventLog, bcId, signal), [])
  return open.map((call) => ({ type: 'tool_call_completed', ...call, outcome: 'interrupted' }))
}

/** At each turn boundary (design §4); once for each position, so that a repeat changes nothing. */
async function saveState(deps: ActivityDeps, input: RecordState, upTo: number, signal: AbortSignal) {
  if (!input.events.some((event) => event.type === 'turn_ended')) return
  const { bcId, owner } = input
  const once = { id: `state/${upTo}`, epoch: 0, sequence: 1 }
  const state = {
    bcId,
    owner,
    upTo,
    append: (event: RunEvent) => deps.eventLog.append(bcId, once, [encodeRunEvent(event)], signal),
  }
  await unlessLost(() => deps.crashPoint('agent.state', () => saveAgentState(deps, state, signal)), undefined)
}

/** Of a log with a hole nothing can be folded; that the agent stands still for it can be told all the same. */
async function unlessLost<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TuttiError && error.code === 'data_loss') return otherwise
    throw error
  }
}

async function toRunEvent(
  event: WorkflowEvent,
  input: RecordState,
  config: AgentConfig,
  configs: ConfigBlobs,
  signal: AbortSignal,
): Promise<RunEvent> {
  switch (event.type) {
    case 'session_start':
      return {
        type: 'session_start',
        repository: config.repository,
        ref: config.ref,
        agent: config.agentSpec,
      }
    case 'user_message': {
      const { turnId, promptBlobId, source } = event.turn
      const text = await configs.text(promptBlobId, signal)
      const content = text.length <= limits.maxInlineEventBytes / 4 ? { text } : { blobId: promptBlobId }
      return { type: 'user_message', turnId, source, ...content }
    }
    case 'turn_interrupted':
      return { incarnation: input.incarnation, ...event }
    default:
      return event
  }
}

/** A child as its ensemble's stream shows it. */
export function childView(row: AgentRow): ChildView {
  return {
    bcId: row.bcId,
    index: row.childIndex ?? 0,
    agent: row.agentSpec,
    status: row.state.status,
    hadSandbox: row.hadSandbox,
    ...(row.state.reason && { reason: row.state.reason }),
    // A worker that was killed while the agent asked leaves its question in the row.
    ...(row.openQuestion && !isAtRest(row.state) && { question: row.openQuestion }),
    ...(row.commit && { commit: row.commit, filesChanged: row.filesChanged }),
  }
}

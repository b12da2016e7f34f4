import { create } from '@bufbuild/protobuf'
import { TuttiError, isAtRest, type AgentStatus, type BlobId } from '@tutti/core'
import {
  AgentExtensionsSchema,
  StreamConversationResponseSchema,
  type AgentExtensions,
  type CloudAgentState,
  type InteractionUpdate,
  type StreamConversationRequest,
  type StreamConversationResponse,
} from '@tutti/proto'
import { decodeOffset, encodeOffset, type RunEvent } from '@tutti/protocol'
import { blobIdToBytes, toInteractionUpdate, workflowStatusToWire } from '@tutti/protocol/wire'

import { agentStreamHasEnded } from '../agent-stream-end.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import { followLog, startPosition } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { initialMessages, newestState, withoutResults } from '../initial-state.ts'
import { watchRow } from '../watch-row.ts'

type Message = StreamConversationResponse['message']

/**
 * `StreamConversation` (seed 000 §4): the newest saved state and everything since, or everything after an offset; then live. Ends after the
 * status that leaves no turn to run, unless `follow` is set.
 */
export function createStreamConversation(deps: HandlerDeps) {
  const { catalog, eventLog, recordViews, savedStates, config, metrics, clock, log } = deps

  return async function* (
    request: StreamConversationRequest,
    context: CallContext,
  ): AsyncGenerator<StreamConversationResponse> {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    const { row, reached } = await watchRow(deps, () => catalog.agents.get(owner, bcId, signal), signal)
    const newest = request.offsetKey === undefined ? await newestState(deps, row, signal) : undefined
    const from = newest
      ? decodeOffset(bcId, newest.saved.offsetKey)
      : await startPosition(eventLog, bcId, request.offsetKey, signal)
    const left = metrics.readerOpened('conversation')
    try {
      let offsetKey = encodeOffset(bcId, from)
      let status: AgentStatus | undefined
      let live = false
      if (request.offsetKey === undefined) yield* initialMessages(deps, row, newest, request, signal)
      if (newest && newest.saved.status !== 'UNSPECIFIED') {
        status = newest.saved.status
        const message = statusMessage(status, newest.state.tutti, offsetKey)
        yield create(StreamConversationResponseSchema, { message })
      }
      for await (const step of followLog(deps.reads, bcId, from, config['stream.heartbeat'], signal)) {
        for (const record of step.records) {
          const { event, offset } = recordViews.of(bcId, record)
          if (event.type === 'status') {
            status = event.status
            if (isAtRest(event)) await reached(record.sequence)
          }
          if (event.type === 'state_saved' && event.blobId === newest?.saved.blobId) continue
          const message = await messageOf(event, offset, request, signal)
          if (!message) continue
          offsetKey = offset
          yield create(StreamConversationResponseSchema, { message })
        }
        const last = step.records.at(-1)
        if (live && last) metrics.observeDelay((clock.now() - last.at) / 1000)
        live = step.atHead
        if (step.idle) yield heartbeat(offsetKey)
        if (step.closed) return
        if (request.follow || !step.atHead) continue
        if (await agentStreamHasEnded(deps, { owner, bcId, status, position: step.position }, signal)) return
      }
    } finally {
      left()
    }
  }

  async function messageOf(
    event: RunEvent,
    offsetKey: string,
    request: StreamConversationRequest,
    signal: AbortSignal,
  ): Promise<Message | undefined> {
    if (event.type === 'status') {
      const { status, paused, reason = '', queued } = event
      return statusMessage(
        status,
        create(AgentExtensionsSchema, { paused, reason, queuedTurns: queued }),
        offsetKey,
      )
    }
    if (event.type === 'state_saved') {
      const state = await stateOf(event.blobId, signal)
      if (!state) return undefined
      const cloudAgentState = request.filterHeavyStepData ? withoutResults(state) : state
      const value = { cloudAgentState, blobId: blobIdToBytes(event.blobId), offsetKey }
      return {
        case: 'cloudAgentStateWithIdAndOffset',
        value: { $typeName: 'aiserver.v1.CloudAgentStateWithIdAndOffset', ...value },
      }
    }
    const interactionUpdate = toInteractionUpdate(event)
    if (!interactionUpdate) return undefined
    if (event.type === 'user_message' && event.blobId && event.text === undefined)
      await fillIn(interactionUpdate, event.blobId, signal)
    if (request.filterHeavyStepData) dropResult(interactionUpdate)
    return {
      case: 'interactionUpdateWithOffset',
      value: { $typeName: 'aiserver.v1.InteractionUpdateWithOffset', offsetKey, interactionUpdate },
    }
  }

  /** Made from the log, so that a reader can do without one that is gone. */
  async function stateOf(blobId: BlobId, signal: AbortSignal): Promise<CloudAgentState | undefined> {
    try {
      return await savedStates.loadBlob(blobId, signal)
    } catch (error) {
      if (!(error instanceof TuttiError) || error.code !== 'data_loss') throw error
      log.error({ err: error }, 'a saved state cannot be read')
      return undefined
    }
  }

  async function fillIn(update: InteractionUpdate, blobId: BlobId, signal: AbortSignal): Promise<void> {
    const { message } = update
    if (message.case !== 'userMessageAppended' || !message.value.userMessage) return
    message.value.userMessage.text = await deps.jsonBlobs.getText(blobId, signal)
  }
}

function statusMessage(status: AgentStatus, tutti: AgentExtensions | undefined, offsetKey: string): Message {
  return {
    case: 'workflowStatusWithOffset',
    value: {
      $typeName: 'aiserver.v1.WorkflowStatusWithOffset',
      workflowStatus: workflowStatusToWire(status),
      offsetKey,
      ...(tutti && { tutti }),
    },
  }
}

function heartbeat(offsetKey: string): StreamConversationResponse {
  return create(StreamConversationResponseSchema, {
    message: {
      case: 'interactionUpdateWithOffset',
      value: { offsetKey, interactionUpdate: { message: { case: 'heartbeat', value: {} } } },
    },
  })
}

/** Results of tools are the heavy part; how the call ended stays. */
function dropResult(update: InteractionUpdate): void {
  const { message } = update
  if (message.case === 'toolCallCompleted' && message.value.toolCall?.result)
    message.value.toolCall.result.text = ''
}

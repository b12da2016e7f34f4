import { create, fromBinary } from '@bufbuild/protobuf'
import { TuttiError, type AgentStatus, type BlobId } from '@tutti/core'
import {
  AgentExtensionsSchema,
  CloudAgentStateSchema,
  StreamConversationResponseSchema,
  type CloudAgentState,
  type InteractionUpdate,
  type StreamConversationRequest,
  type StreamConversationResponse,
} from '@tutti/proto'
import { encodeOffset, type RunEvent } from '@tutti/protocol'
import { blobIdToBytes, toInteractionUpdate, workflowStatusToWire } from '@tutti/protocol/wire'

import { agentStreamHasEnded } from '../agent-stream-end.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import { followLog, startPosition } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'

type Message = StreamConversationResponse['message']

/**
 * `StreamConversation` (seed 000 §4): the empty state and everything since, or everything after an offset; then live. Ends after the
 * status that leaves no turn to run, unless `follow` is set.
 */
export function createStreamConversation(deps: HandlerDeps) {
  const { catalog, eventLog, recordViews, config, metrics, clock } = deps

  return async function* (
    request: StreamConversationRequest,
    context: CallContext,
  ): AsyncGenerator<StreamConversationResponse> {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    await catalog.agents.get(owner, bcId, signal)
    const from = await startPosition(eventLog, bcId, request.offsetKey, signal)
    const left = metrics.readerOpened('conversation')
    try {
      let offsetKey = encodeOffset(bcId, from)
      let status: AgentStatus | undefined
      let live = false
      if (request.offsetKey === undefined) yield initialState()
      for await (const step of followLog(deps.reads, bcId, from, config['stream.heartbeat'], signal)) {
        for (const record of step.records) {
          const { event, offset } = recordViews.of(bcId, record)
          if (event.type === 'status') status = event.status
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
    if (event.type === 'status') return statusMessage(event, offsetKey)
    if (event.type === 'state_saved') {
      const cloudAgentState = await loadState(event.blobId, signal)
      const value = { cloudAgentState, blobId: blobIdToBytes(event.blobId), offsetKey }
      return {
        case: 'cloudAgentStateWithIdAndOffset',
        value: { $typeName: 'aiserver.v1.CloudAgentStateWithIdAndOffset', ...value },
      }
    }
    const interactionUpdate = toInteractionUpdate(event)
    if (!interactionUpdate) return undefined
    if (event.type === 'user_message' && event.blobId) await fillIn(interactionUpdate, event.blobId, signal)
    if (request.filterHeavyStepData) dropResult(interactionUpdate)
    return {
      case: 'interactionUpdateWithOffset',
      value: { $typeName: 'aiserver.v1.InteractionUpdateWithOffset', offsetKey, interactionUpdate },
    }
  }

  async function fillIn(update: InteractionUpdate, blobId: BlobId, signal: AbortSignal): Promise<void> {
    const { message } = update
    if (message.case !== 'userMessageAppended' || !message.value.userMessage) return
    message.value.userMessage.text = await deps.jsonBlobs.getText(blobId, signal)
  }

  async function loadState(blobId: BlobId, signal: AbortSignal): Promise<CloudAgentState> {
    const bytes = await deps.blobs.get(blobId, signal)
    try {
      return fromBinary(CloudAgentStateSchema, bytes)
    } catch (cause) {
      throw new TuttiError('data_loss', `The stored state ${blobId} cannot be read.`, { id: blobId }, cause)
    }
  }
}

/** The state at the start of the log, which is where a stream without an offset begins. */
function initialState(): StreamConversationResponse {
  return create(StreamConversationResponseSchema, {
    message: { case: 'initialState', value: { cloudAgentState: { conversationState: {} } } },
  })
}

function statusMessage(event: Extract<RunEvent, { type: 'status' }>, offsetKey: string): Message {
  return {
    case: 'workflowStatusWithOffset',
    value: {
      $typeName: 'aiserver.v1.WorkflowStatusWithOffset',
      workflowStatus: workflowStatusToWire(event.status),
      offsetKey,
      tutti: create(AgentExtensionsSchema, {
        paused: event.paused,
        reason: event.reason ?? '',
        queuedTurns: event.queued,
      }),
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

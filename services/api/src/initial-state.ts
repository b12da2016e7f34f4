import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { TuttiError } from '@tutti/core'
import {
  StreamConversationResponseSchema,
  type CloudAgentState,
  type StreamConversationRequest,
  type StreamConversationResponse,
} from '@tutti/proto'
import { blobIdFromBytes, blobIdToBytes, workflowStatusToWire } from '@tutti/protocol/wire'
import type { AgentRow, SavedState } from '@tutti/store'

import type { HandlerDeps } from './handler.ts'
import type { LoadedBlob } from './saved-states.ts'

/** Within the initial state: with a state of 1 MiB it stays under the 4 MiB of a message. */
const besideStateBytes = 2 << 20
/** In messages of their own. */
const firstBytes = 16 << 20
const batchBytes = 1 << 20

/**
 * The newest saved state of an agent; undefined when there is none, or none that can be read: then the log is read from its start.
 *
 * @throws TuttiError `failed_precondition` for a format that this version does not know.
 */
export async function newestState(
  { savedStates, log }: HandlerDeps,
  { bcId, savedState }: AgentRow,
  signal: AbortSignal,
): Promise<{ readonly saved: SavedState; readonly state: CloudAgentState } | undefined> {
  if (!savedState) return undefined
  try {
    return { saved: savedState, state: await savedStates.load(savedState, signal) }
  } catch (error) {
    if (!(error instanceof TuttiError) || error.code !== 'data_loss') throw error
    log.error({ bc_id: bcId, err: error }, 'a saved state cannot be read')
    return undefined
  }
}

/**
 * What a stream without an offset begins with (seeds 000 §4, 001): the state, the agent's status now, and the blobs that the state names:
 * beside it, or in messages before it when the client asks for that. What the client has already is left out, also the state.
 */
export async function* initialMessages(
  { savedStates }: Pick<HandlerDeps, 'savedStates'>,
  row: AgentRow,
  newest: { readonly saved: SavedState; readonly state: CloudAgentState } | undefined,
  request: StreamConversationRequest,
  signal: AbortSignal,
): AsyncGenerator<StreamConversationResponse> {
  const workflowStatus = workflowStatusToWire(row.state.status)
  if (!newest) {
    yield response({
      case: 'initialState',
      value: { cloudAgentState: { conversationState: {} }, workflowStatus },
    })
    return
  }
  const { saved, state } = newest
  const known = new Set(request.preFetchedBlobIds.map((id) => blobIdFromBytes(id, 'pre_fetched_blob_ids')))
  const first = request.shouldSendPrefetchedBlobsFirst
  const named = request.filterHeavyStepData
    ? []
    : savedStates.named(row.owner, state, known, first ? firstBytes : besideStateBytes, signal)
  const preFetchedBlobs: LoadedBlob[] = []
  let size = 0
  for await (const blob of named) {
    if (first && size + blob.value.byteLength > batchBytes) {
      yield response({ case: 'prefetchedBlobs', value: { blobs: preFetchedBlobs.splice(0) } })
      size = 0
    }
    preFetchedBlobs.push(blob)
    size += blob.value.byteLength
  }
  if (first && preFetchedBlobs.length > 0)
    yield response({ case: 'prefetchedBlobs', value: { blobs: preFetchedBlobs.splice(0) } })
  const cloudAgentState = known.has(saved.blobId)
    ? {}
    : { cloudAgentState: request.filterHeavyStepData ? withoutResults(state) : state }
  yield response({
    case: 'initialState',
    value: { blobId: blobIdToBytes(saved.blobId), ...cloudAgentState, preFetchedBlobs, workflowStatus },
  })
}

/** A state without the bodies of tool results. */
export function withoutResults(state: CloudAgentState): CloudAgentState {
  const { conversationState } = state
  if (!conversationState) return state
  const turns = conversationState.turns.map((turn) => ({
    ...turn,
    toolCalls: turn.toolCalls.map((call) =>
      call.result ? { ...call, result: { ...call.result, text: '' } } : call,
    ),
  }))
  return { ...state, conversationState: { ...conversationState, turns } }
}

const response = (message: MessageInitShape<typeof StreamConversationResponseSchema>['message'] & object) =>
  create(StreamConversationResponseSchema, { message })

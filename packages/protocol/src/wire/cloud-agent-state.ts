import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { reasons, TuttiError, type BlobId, type EnsembleId, type Reason } from '@tutti/core'
import {
  AgentExtensionsSchema,
  CloudAgentStateSchema,
  ErrorDetailsSchema,
  ErrorType,
  type AgentExtensions,
  type CloudAgentState,
  type ErrorDetails,
} from '@tutti/proto'

import type { RunEvent } from '../run-event.ts'
import { blobIdFromBytes, blobIdToBytes } from './blob-bytes.ts'
import { foldConversation } from './conversation-state.ts'
import { toInteractionUpdate } from './interaction-update.ts'
import { questionToWire } from './question.ts'
import { cutHead, stateBounds } from './state-bounds.ts'
import { sourceToWire } from './statuses.ts'

/** What is known of an agent before its log says anything. */
export interface KnownAgent {
  readonly title: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly ensembleId?: EnsembleId
}

/** The state before the first event. */
export function initialCloudAgentState({ title, createdAt, ensembleId }: KnownAgent): CloudAgentState {
  return create(CloudAgentStateSchema, {
    conversationState: {},
    agentName: bytes(cutHead(title, stateBounds.errorText)),
    originalRequestStartUnixMs: BigInt(createdAt),
    tutti: { ensembleId: ensembleId ?? '' },
  })
}

/**
 * The state (seed 000 §1) after one more event of the agent's log. Pure, and the state is all that it goes by, so that a stored state
 * and the events after it give what all events would. An event whose `offset` the state has already is left out. Bounded: encoded it
 * stays below 1 MiB; what is cut is in the log.
 *
 * `last_interaction_update_offset_key` is the offset of the newest event of any kind: what the state stands for, and where to read on.
 */
export function foldCloudAgentState(
  state: CloudAgentState,
  event: RunEvent,
  offset: string,
): CloudAgentState {
  // Offsets of one log sort in its order.
  if (offset <= state.lastInteractionUpdateOffsetKey) return state
  const conversationState = foldConversation(state.conversationState ?? emptyConversation(), event)
  return {
    ...state,
    conversationState,
    numPriorInteractionUpdates: state.numPriorInteractionUpdates + (toInteractionUpdate(event) ? 1 : 0),
    lastInteractionUpdateOffsetKey: offset,
    ...changesOf(state, event),
    tutti: { ...tuttiOf(state), ...extensionChanges(state, event) },
  }
}

export const encodeCloudAgentState = (state: CloudAgentState): Uint8Array<ArrayBuffer> =>
  toBinary(CloudAgentStateSchema, state)

/** @throws TuttiError `data_loss` when the bytes are no state. */
export function decodeCloudAgentState(encoded: Uint8Array): CloudAgentState {
  try {
    return fromBinary(CloudAgentStateSchema, encoded)
  } catch (cause) {
    throw new TuttiError('data_loss', 'A stored state of an agent cannot be read.', {}, cause)
  }
}

/** The blobs that a state names, in its order, each once. */
export function blobsOfState(state: CloudAgentState): BlobId[] {
  const turns = state.conversationState?.turns ?? []
  const named = [
    state.originalPromptBlobId,
    state.repositoryInfoBlobId,
    state.originalConversationActionBlobId,
    state.videoAnnotationsBlobId,
    ...turns.flatMap((turn) => turn.toolCalls.map(({ result }) => result?.blobId ?? new Uint8Array())),
  ]
  const ids = named.filter((id) => id.byteLength > 0).map((id) => blobIdFromBytes(id))
  return [...new Set(ids)]
}

function changesOf(state: CloudAgentState, event: RunEvent): Partial<CloudAgentState> {
  switch (event.type) {
    case 'session_start':
      return event.ref === '' ? {} : { baseBranch: cutHead(event.ref, stateBounds.errorText) }
    case 'sandbox':
      return event.commit && !state.startingCommit ? { startingCommit: event.commit } : {}
    case 'user_message': {
      const source = sourceToWire(event.source)
      if (state.kickoffMessageId !== '') return { lastFollowupSource: source }
      return {
        kickoffMessageId: cutHead(event.turnId, stateBounds.name),
        initialSource: source,
        ...(event.blobId && { originalPromptBlobId: blobIdToBytes(event.blobId) }),
      }
    }
    case 'turn_started': {
      const { commit } = tuttiOf(state)
      return {
        turnStartTodoIds: (state.conversationState?.todos ?? []).map(({ id }) => id),
        ...(commit !== '' && { lastUserTurnCommit: commit }),
      }
    }
    case 'turn_ended':
      return {
        // A paused turn goes on later.
        ...(event.reason !== 'paused' && { numCompletedTurns: state.numCompletedTurns + 1 }),
        ...(event.detail && { userFacingErrorDetails: errorDetails(event.reason, event.detail) }),
      }
    case 'status': {
      if (event.status !== 'ERROR') return withoutError(state)
      return state.userFacingErrorDetails || !event.reason
        ? {}
        : { userFacingErrorDetails: errorDetails(event.reason, '') }
    }
    case 'summary':
      return { summary: bytes(cutHead(event.summary, stateBounds.summary)) }
    case 'git_commit':
      return {
        commits: [...state.commits, cutHead(event.sha, stateBounds.name)].slice(-stateBounds.commits),
        commitCount: state.commitCount + 1,
      }
    case 'delivery': {
      if (event.outcome !== 'delivered') return {}
      const branchName = bytes(cutHead(event.branch, stateBounds.errorText))
      return event.pullRequest
        ? { branchName, prUrl: bytes(cutHead(event.pullRequest.url, stateBounds.errorText)) }
        : { branchName }
    }
    default:
      return {}
  }
}

function extensionChanges(state: CloudAgentState, event: RunEvent): Partial<AgentExtensions> {
  switch (event.type) {
    case 'status':
      return { paused: event.paused, reason: event.reason ?? '', queuedTurns: event.queued }
    case 'sandbox':
      return {
        incarnation: event.incarnation,
        ...(event.state === 'ready' && event.commit && { commit: event.commit }),
        queuePosition: event.state === 'waiting' ? event.position : undefined,
      } as Partial<AgentExtensions>
    case 'checkpoint':
      return { commit: event.commit }
    case 'agent_question':
      return { question: questionToWire(event) }
    case 'answer':
    case 'turn_ended':
      return tuttiOf(state).question ? ({ question: undefined } as Partial<AgentExtensions>) : {}
    case 'delivery':
      return { deliveryFailure: event.outcome === 'failed' ? event.failure : '' }
    default:
      return {}
  }
}

const emptyConversation = () => create(CloudAgentStateSchema, { conversationState: {} }).conversationState!

const tuttiOf = (state: CloudAgentState): AgentExtensions => state.tutti ?? create(AgentExtensionsSchema)

const withoutError = (state: CloudAgentState): Partial<CloudAgentState> =>
  state.userFacingErrorDetails ? ({ userFacingErrorDetails: undefined } as Partial<CloudAgentState>) : {}

function errorDetails(reason: Reason, detail: string): ErrorDetails {
  return create(ErrorDetailsSchema, {
    error: ErrorType.UNSPECIFIED,
    details: {
      title: reasons[reason].sentence,
      detail: cutHead(detail, stateBounds.errorText),
      additionalInfo: { reason },
    },
  })
}

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

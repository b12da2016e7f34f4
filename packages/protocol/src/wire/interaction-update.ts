import { create } from '@bufbuild/protobuf'
import type { Reason } from '@tutti/core'
import { InteractionUpdateSchema, type InteractionUpdate, type ShellOutputDeltaUpdate } from '@tutti/proto'

import type { RunEvent, ShellOutput } from '../run-event.ts'
import { blobIdToBytes } from './blob-bytes.ts'
import { toolOutcomeFromWire, toolOutcomeToWire } from './tool-outcome.ts'
import { toolBlob, toolText } from './tool-text.ts'

type Init = NonNullable<Parameters<typeof create<typeof InteractionUpdateSchema>>[1]>['message']
/**
 * The event as `agent.v1.InteractionUpdate` (seed 000 §2), or undefined when this view cannot carry it: what happens to the
 * sandbox, the workspace and the ensemble has no place in it, nor has the mark for left-out shell output. Results and deltas of
 * tools are text there; other values are given as JSON. A prompt that is a blob has an empty text: whoever has the blobs fills it in.
 */
export function toInteractionUpdate(event: RunEvent): InteractionUpdate | undefined {
  const message = initOf(event)
  return message && create(InteractionUpdateSchema, { message })
}

function initOf(event: RunEvent): Init | undefined {
  switch (event.type) {
    case 'user_message':
      return {
        case: 'userMessageAppended',
        value: { userMessage: { text: event.text ?? '', messageId: event.turnId } },
      }
    case 'turn_ended':
      return { case: 'turnEnded', value: { reason: event.reason, turnId: event.turnId } }
    case 'text_delta':
      return { case: 'textDelta', value: { text: event.text } }
    case 'thinking_delta':
      return { case: 'thinkingDelta', value: { text: event.text } }
    case 'thinking_completed':
      return { case: 'thinkingCompleted', value: { thinkingDurationMs: int32(event.durationMs) } }
    case 'partial_tool_call':
      return {
        case: 'partialToolCall',
        value: {
          callId: event.callId,
          toolCall: { name: event.toolName },
          argsTextDelta: event.argsTextDelta,
          modelCallId: event.modelCallId ?? '',
        },
      }
    case 'tool_call_started':
      return {
        case: 'toolCallStarted',
        value: {
          callId: event.callId,
          toolCall: { name: event.toolName, argsJson: JSON.stringify(event.args) ?? '' },
          modelCallId: event.modelCallId ?? '',
        },
      }
    case 'tool_call_delta':
      return {
        case: 'toolCallDelta',
        value: {
          callId: event.callId,
          toolCallDelta: { textDelta: toolText(event.delta) },
          modelCallId: event.modelCallId ?? '',
        },
      }
    case 'tool_call_completed':
      return {
        case: 'toolCallCompleted',
        value: {
          callId: event.callId,
          toolCall: {
            name: event.toolName,
            result: {
              outcome: toolOutcomeToWire(event.outcome),
              text: toolText(event.result),
              ...blobIdOf(event.result),
            },
          },
          modelCallId: event.modelCallId ?? '',
        },
      }
    case 'shell_output_delta':
      return shellInit(event.callId, event.event)
    case 'token_delta':
      return { case: 'tokenDelta', value: { tokens: int32(event.tokens) } }
    case 'summary_started':
      return { case: 'summaryStarted', value: {} }
    case 'summary':
      return { case: 'summary', value: { summary: event.summary } }
    case 'summary_completed':
      return { case: 'summaryCompleted', value: {} }
    case 'step_started':
      return { case: 'stepStarted', value: { stepId: BigInt(event.stepId) } }
    case 'step_completed':
      return {
        case: 'stepCompleted',
        value: { stepId: BigInt(event.stepId), stepDurationMs: BigInt(Math.round(event.durationMs)) },
      }
    default:
      return undefined
  }
}

/** The event that an update stands for; undefined for heartbeats and for messages of a newer version. */
export function fromInteractionUpdate(update: InteractionUpdate): RunEvent | undefined {
  const { message } = update
  switch (message.case) {
    case 'userMessageAppended': {
      const { text = '', messageId = '' } = message.value.userMessage ?? {}
      return { type: 'user_message', turnId: messageId, text, source: 'UNSPECIFIED' }
    }
    case 'turnEnded':
      return {
        type: 'turn_ended',
        turnId: message.value.turnId,
        reason: message.value.reason as Reason,
      }
    case 'textDelta':
      return { type: 'text_delta', text: message.value.text }
    case 'thinkingDelta':
      return { type: 'thinking_delta', text: message.value.text }
    case 'thinkingCompleted':
      return { type: 'thinking_completed', durationMs: message.value.thinkingDurationMs }
    case 'partialToolCall':
      return {
        type: 'partial_tool_call',
        ...callOf(message.value),
        argsTextDelta: message.value.argsTextDelta,
      }
    case 'toolCallStarted': {
      const argsJson = message.value.toolCall?.argsJson ?? ''
      return {
        type: 'tool_call_started',
        ...callOf(message.value),
        args: argsJson === '' ? undefined : (JSON.parse(argsJson) as unknown),
      }
    }
    case 'toolCallDelta': {
      const { callId, modelCallId, toolCallDelta } = message.value
      return {
        type: 'tool_call_delta',
        callId,
        delta: toolCallDelta?.textDelta ?? '',
        ...modelCall(modelCallId),
      }
    }
    case 'toolCallCompleted': {
      const result = message.value.toolCall?.result
      return {
        type: 'tool_call_completed',
        ...callOf(message.value),
        outcome: toolOutcomeFromWire(result?.outcome),
        ...(result?.text ? { result: result.text } : {}),
      }
    }
    case 'shellOutputDelta':
      return shellEvent(message.value)
    case 'tokenDelta':
      return { type: 'token_delta', tokens: message.value.tokens }
    case 'summaryStarted':
      return { type: 'summary_started' }
    case 'summary':
      return { type: 'summary', summary: message.value.summary }
    case 'summaryCompleted':
      return { type: 'summary_completed' }
    case 'stepStarted':
      return { type: 'step_started', stepId: Number(message.value.stepId) }
    case 'stepCompleted':
      return {
        type: 'step_completed',
        stepId: Number(message.value.stepId),
        durationMs: Number(message.value.stepDurationMs),
      }
    default:
      return undefined
  }
}

/** A command that a signal ended has no exit code; the wire then has -1 and the signal's name. */
const noExitCode = -1

function shellInit(callId: string, event: ShellOutput): Init | undefined {
  switch (event.case) {
    case 'start':
      return {
        case: 'shellOutputDelta',
        value: { callId, event: { case: 'start', value: { command: event.command } } },
      }
    case 'stdout':
    case 'stderr':
      return {
        case: 'shellOutputDelta',
        value: { callId, event: { case: event.case, value: { data: event.data } } },
      }
    case 'exit':
      return {
        case: 'shellOutputDelta',
        value: {
          callId,
          event: { case: 'exit', value: { code: event.code ?? noExitCode, signal: event.signal ?? '' } },
        },
      }
    case 'truncated':
      return undefined
  }
}

function shellEvent({ callId, event }: ShellOutputDeltaUpdate): RunEvent | undefined {
  switch (event.case) {
    case 'start':
      return { type: 'shell_output_delta', callId, event: { case: 'start', command: event.value.command } }
    case 'stdout':
    case 'stderr':
      return { type: 'shell_output_delta', callId, event: { case: event.case, data: event.value.data } }
    case 'exit': {
      const { code, signal } = event.value
      return {
        type: 'shell_output_delta',
        callId,
        event: { case: 'exit', code: code === noExitCode ? null : code, ...(signal ? { signal } : {}) },
      }
    }
    default:
      return undefined
  }
}

interface WireCall {
  readonly callId: string
  readonly modelCallId: string
  readonly toolCall?: { readonly name: string } | undefined
}

const callOf = ({ callId, toolCall, modelCallId }: WireCall) => ({
  callId,
  toolName: toolCall?.name ?? '',
  ...modelCall(modelCallId),
})

const modelCall = (modelCallId: string) => (modelCallId ? { modelCallId } : {})

const blobIdOf = (result: unknown) => {
  const blobId = toolBlob(result)
  return blobId ? { blobId: blobIdToBytes(blobId) } : {}
}

const int32 = (value: number): number => Math.min(Math.max(Math.round(value), -(2 ** 31)), 2 ** 31 - 1)

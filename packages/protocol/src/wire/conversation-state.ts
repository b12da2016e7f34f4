import { create } from '@bufbuild/protobuf'
import {
  ConversationTurnSchema,
  TodoItemSchema,
  TodoStatus,
  ToolCallResultSchema,
  ToolCallSchema,
  UserMessageSchema,
  type ConversationState,
  type ConversationTurn,
  type TodoItem,
  type ToolCall,
} from '@tutti/proto'

import type { RunEvent } from '../run-event.ts'
import { blobIdToBytes } from './blob-bytes.ts'
import { boundTurns, cutHead, cutTail, stateBounds } from './state-bounds.ts'
import { toolOutcomeToWire } from './tool-outcome.ts'
import { toolBlob, toolText } from './tool-text.ts'

type Completed = Extract<RunEvent, { type: 'tool_call_completed' }>

/** The conversation after one more event; the same object when the event is no part of it. Bounded by {@link stateBounds}. */
export function foldConversation(state: ConversationState, event: RunEvent): ConversationState {
  switch (event.type) {
    case 'user_message': {
      const turnId = nameOf(event.turnId)
      if (state.turns.some((turn) => turn.turnId === turnId)) return state
      const text = cutHead(event.text ?? '', stateBounds.messageText)
      const userMessage = create(UserMessageSchema, { text, messageId: turnId })
      return withTurns(state, [...state.turns, create(ConversationTurnSchema, { turnId, userMessage })])
    }
    case 'turn_started':
      return withTurns(state, started(state.turns, nameOf(event.turnId)))
    case 'turn_ended': {
      const turnId = nameOf(event.turnId)
      return changeTurn(
        state,
        state.turns.findLastIndex((turn) => turn.turnId === turnId),
        (turn) => ({
          ...turn,
          reason: event.reason,
        }),
      )
    }
    case 'text_delta':
      return changeTurn(state, runningIndex(state.turns), (turn) => ({
        ...turn,
        text: cutTail(turn.text + event.text.toWellFormed(), stateBounds.turnText),
      }))
    case 'tool_call_started': {
      const call = create(ToolCallSchema, {
        callId: nameOf(event.callId),
        name: nameOf(event.toolName),
        argsJson: cutHead(JSON.stringify(event.args) ?? '', stateBounds.toolArgs),
      })
      const todos = todosOf(event.toolName, event.args)
      return addCall(todos ? { ...state, todos } : state, call)
    }
    case 'tool_call_completed':
      return completed(state, event)
    default:
      return state
  }
}

const nameOf = (text: string): string => cutHead(text, stateBounds.name)

const withTurns = (state: ConversationState, turns: readonly ConversationTurn[]): ConversationState => ({
  ...state,
  turns: boundTurns(turns),
})

/** The turn that runs comes before those that wait; one that was cut off or paused goes on where it is. */
function started(turns: readonly ConversationTurn[], turnId: string): ConversationTurn[] {
  const known = turns.find((turn) => turn.turnId === turnId)
  const turn = { ...(known ?? create(ConversationTurnSchema, { turnId })), reason: '' }
  if (known && known.reason !== '') return turns.map((other) => (other === known ? turn : other))
  const others = turns.filter((other) => other !== known)
  const place = others.findIndex(({ reason }) => reason === '')
  return place === -1 ? [...others, turn] : others.toSpliced(place, 0, turn)
}

function runningIndex(turns: readonly ConversationTurn[]): number {
  const open = turns.findIndex(({ reason }) => reason === '')
  return open === -1 ? turns.length - 1 : open
}

function changeTurn(
  state: ConversationState,
  index: number,
  change: (turn: ConversationTurn) => ConversationTurn,
): ConversationState {
  const turn = state.turns[index]
  return turn ? { ...state, turns: state.turns.with(index, change(turn)) } : state
}

const addCall = (state: ConversationState, call: ToolCall): ConversationState =>
  changeTurn(state, runningIndex(state.turns), (turn) => ({
    ...turn,
    toolCalls: [...turn.toolCalls, call].slice(-stateBounds.toolCalls),
  }))

function completed(state: ConversationState, event: Completed): ConversationState {
  const callId = nameOf(event.callId)
  const blobId = toolBlob(event.result)
  const exitCode = exitCodeOf(event.result)
  const result = create(ToolCallResultSchema, {
    outcome: toolOutcomeToWire(event.outcome),
    text: blobId ? '' : cutHead(toolText(event.result), stateBounds.toolResult),
    ...(blobId && { blobId: blobIdToBytes(blobId) }),
    ...(exitCode !== undefined && { exitCode }),
  })
  const isOpen = (call: ToolCall) => call.callId === callId && !call.result
  const index = state.turns.findLastIndex((turn) => turn.toolCalls.some(isOpen))
  if (index === -1) {
    return addCall(state, create(ToolCallSchema, { callId, name: nameOf(event.toolName), result }))
  }
  return changeTurn(state, index, (turn) => ({
    ...turn,
    toolCalls: turn.toolCalls.map((call) => (isOpen(call) ? { ...call, result } : call)),
  }))
}

function exitCodeOf(result: unknown): number | undefined {
  if (result === null || typeof result !== 'object' || !('exitCode' in result)) return undefined
  const { exitCode } = result
  return typeof exitCode === 'number' && Number.isInteger(exitCode) && Math.abs(exitCode) < 2 ** 31
    ? exitCode
    : undefined
}

const todoStatuses: Readonly<Record<string, TodoStatus>> = {
  pending: TodoStatus.PENDING,
  in_progress: TodoStatus.IN_PROGRESS,
  completed: TodoStatus.COMPLETED,
  cancelled: TodoStatus.CANCELLED,
}

/** The list that a call of a todo tool sets: `todos` with `text` (ours) or `content` (other agents'). */
function todosOf(toolName: string, args: unknown): TodoItem[] | undefined {
  if (!/^todo(_?write)?$/i.test(toolName) || args === null || typeof args !== 'object') return undefined
  const { todos } = args as { todos?: unknown }
  if (!Array.isArray(todos)) return undefined
  return todos.slice(0, stateBounds.todos).map((todo: unknown, index) => {
    const item = (typeof todo === 'object' && todo !== null ? todo : {}) as Record<string, unknown>
    return create(TodoItemSchema, {
      id: nameOf(toolText(item['id']) || String(index + 1)),
      content: cutHead(toolText(item['content'] ?? item['text']), stateBounds.todoText),
      status: todoStatuses[toolText(item['status'])] ?? TodoStatus.UNSPECIFIED,
    })
  })
}

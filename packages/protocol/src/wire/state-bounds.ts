import { toBinary } from '@bufbuild/protobuf'
import { ConversationTurnSchema, type ConversationTurn } from '@tutti/proto'

/**
 * What an agent's state keeps, so that it stays under 1 MiB however long the log is. Texts are counted in UTF-16 units, of which each
 * is 3 bytes at most: a turn is then at most 384 KiB, and with its history (`historyBytes`) and the rest below 1 MiB.
 */
export const stateBounds = {
  /** The end of what the agent said in one turn: its last words are the answer. */
  turnText: 32 << 10,
  messageText: 16 << 10,
  /** The newest calls of a turn. */
  toolCalls: 48,
  toolArgs: 400,
  toolResult: 1000,
  /** Ids and names. */
  name: 128,
  todos: 100,
  todoText: 200,
  commits: 100,
  summary: 8 << 10,
  errorText: 1024,
  /** All turns together, when a turn is added. */
  historyBytes: 512 << 10,
  /** What is left of an older turn when they are more than that. */
  oldText: 1000,
} as const

/** The beginning of a text, as UTF-8 can write it. */
export const cutHead = (text: string, length: number): string =>
  (text.length <= length ? text : text.slice(0, length)).toWellFormed()

/** The end of a text. */
export const cutTail = (text: string, length: number): string =>
  (text.length <= length ? text : text.slice(-length)).toWellFormed()

/**
 * The turns in `historyBytes`: first the calls and most of the texts of older turns go, then the oldest turns. The running turn and the
 * last one stay whole.
 */
export function boundTurns(turns: readonly ConversationTurn[]): ConversationTurn[] {
  const sizes = new Map(turns.map((turn) => [turn, sizeOf(turn)]))
  let total = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  if (total <= stateBounds.historyBytes) return [...turns]
  const running = turns.find(({ reason }) => reason === '')
  const older = turns.filter((turn) => turn !== running && turn !== turns.at(-1))
  // What is over goes before what still waits.
  const order = [
    ...older.filter(({ reason }) => reason !== ''),
    ...older.filter(({ reason }) => reason === ''),
  ]
  const kept = new Map<ConversationTurn, ConversationTurn | undefined>()
  for (const replace of [strip, () => undefined]) {
    for (const turn of order) {
      if (total <= stateBounds.historyBytes) break
      const smaller = replace(turn)
      const size = smaller ? sizeOf(smaller) : 0
      total += size - sizes.get(turn)!
      sizes.set(turn, size)
      kept.set(turn, smaller)
    }
  }
  return turns.flatMap((turn) => (kept.has(turn) ? (kept.get(turn) ?? []) : turn))
}

function strip(turn: ConversationTurn): ConversationTurn {
  const { userMessage } = turn
  return {
    ...turn,
    ...(userMessage && {
      userMessage: { ...userMessage, text: cutHead(userMessage.text, stateBounds.oldText) },
    }),
    text: cutTail(turn.text, stateBounds.oldText),
    toolCalls: [],
  }
}

/** As a field of the conversation: with its tag and length. */
const sizeOf = (turn: ConversationTurn): number => toBinary(ConversationTurnSchema, turn).byteLength + 6

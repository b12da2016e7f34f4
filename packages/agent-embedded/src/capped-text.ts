export interface CappedText {
  push(text: string): void
  /** All of it when it fits; else its head and tail around a line that says how much is missing. */
  text(): string
}

/** Holds a text that may be endless in about `max` characters: half for the head, half for the tail. */
export function createCappedText(max: number): CappedText {
  const half = Math.floor(max / 2)
  let head = ''
  let tail = ''
  let total = 0
  return {
    push(text) {
      total += text.length
      const room = half - head.length
      head += text.slice(0, room)
      tail += text.slice(room)
      if (tail.length > 4 * half) tail = tail.slice(-half)
    },
    text() {
      const end = tail.slice(-half)
      const missing = total - head.length - end.length
      return missing === 0 ? head + end : `${head}\n[${missing} characters left out]\n${end}`
    },
  }
}

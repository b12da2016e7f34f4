export interface TextTail {
  push(text: string): void
  /** The last bytes, at most the limit, cut between characters, without blank lines at both ends. */
  text(): string
}

/** Keeps the last `maxBytes` of UTF-8 of a text that may be endless; holds at most four times as much. */
export function createTextTail(maxBytes: number): TextTail {
  let kept = ''
  return {
    push(text) {
      kept += text.length > maxBytes ? text.slice(-maxBytes) : text
      if (kept.length > 4 * maxBytes) kept = kept.slice(-maxBytes)
    },
    text() {
      const bytes = Buffer.from(kept.trim())
      if (bytes.length <= maxBytes) return bytes.toString()
      let start = bytes.length - maxBytes
      // 10xxxxxx continues a character that began before the cut.
      while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1
      return bytes.subarray(start).toString().trim()
    },
  }
}

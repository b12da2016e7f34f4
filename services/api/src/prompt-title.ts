import { visible } from './logger.ts'

const titleChars = 72

/** A title for what was asked: the first line that says something, shortened, safe to show anywhere. */
export function promptTitle(prompt: string): string {
  const line =
    prompt
      .split(/\r\n|[\n\r\u2028\u2029]/)
      .map((text) => text.trim())
      .find((text) => text !== '') ?? 'Untitled'
  const plain = visible(line.replaceAll('\t', ' ')).toWellFormed()
  const characters = Array.from(plain)
  return characters.length <= titleChars
    ? plain
    : `${characters
        .slice(0, titleChars - 1)
        .join('')
        .trimEnd()}…`
}

/** Cuts a text to so many bytes of UTF-8, between characters. */
export function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.byteLength <= maxBytes) return text
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\ufffd+$/, '')
}

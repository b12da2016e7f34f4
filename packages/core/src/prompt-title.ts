import { visibleText } from './visible-text.ts'

/** Longer first lines are cut: a title is read in lists. In characters. */
const titleChars = 72

/** A title for what was asked: the first line that says something, shortened, safe to show anywhere. */
export function promptTitle(prompt: string): string {
  const line =
    prompt
      .split(/\r\n|[\n\r\u2028\u2029]/)
      .map((text) => text.trim())
      .find((text) => text !== '') ?? 'Untitled'
  const plain = visibleText(line.replaceAll(/\s+/g, ' ')).toWellFormed()
  const characters = Array.from(plain)
  return characters.length <= titleChars
    ? plain
    : `${characters
        .slice(0, titleChars - 1)
        .join('')
        .trimEnd()}…`
}

import { visibleText } from '@tutti/core'

/*
 * Text from outside (prompts, agents, file names) goes into Markdown only as code: there a forge reads no HTML, link, image,
 * mention or closing keyword. Deceptive characters become visible (SEC-11).
 */

/** Cut between characters, with a sign that it was. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const end = /[\ud800-\udbff]/.test(text.charAt(maxLength - 2)) ? maxLength - 2 : maxLength - 1
  return `${text.slice(0, end)}…`
}

/** One line of code. */
export function codeSpan(text: string, maxLength = 300): string {
  const line = cutText(visibleText(text.trim().replaceAll(/\s+/g, ' ')), maxLength)
  if (line === '') return '(empty)'
  const ticks = '`'.repeat(longestRun(line) + 1)
  return `${ticks} ${line} ${ticks}`
}

/** A block of code. */
export function codeBlock(text: string, maxLength = 4000): string {
  const block = cutText(visibleText(text.replaceAll('\r\n', '\n')).replace(/\n+$/, ''), maxLength)
  const fence = '`'.repeat(Math.max(3, longestRun(block) + 1))
  return `${fence}text\n${block}\n${fence}`
}

const longestRun = (text: string): number =>
  Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))

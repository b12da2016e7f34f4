import type { Question } from '@tutti/proto'
import { safeLine } from './terminal-text.ts'

/** What an agent asks, with the answers that it offers, in one line. */
export function questionText({ text, options }: Pick<Question, 'text' | 'options'>): string {
  const choice = options.length === 0 ? '' : ` [${options.map(safeLine).join(' | ')}]`
  return `asks: ${safeLine(text)}${choice}`
}

/** The command that answers it. */
export const answerCommand = (bcId: string): string => `tutti agent answer ${safeLine(bcId)} "…"`

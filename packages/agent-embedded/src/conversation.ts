import type { ModelMessage } from 'ai'

/**
 * Gives every tool call at the end of the conversation that has no result one that says so. Providers refuse a conversation with an
 * open call, and the model must know that the work may be half done.
 */
export function closeOpenCalls(messages: ModelMessage[]): void {
  const at = messages.findLastIndex((message) => message.role === 'assistant')
  const assistant = messages[at]
  if (assistant?.role !== 'assistant' || typeof assistant.content === 'string') return
  const answered = new Set(
    messages
      .slice(at + 1)
      .flatMap((message) => (message.role === 'tool' ? message.content : []))
      .flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])),
  )
  for (const part of assistant.content) {
    if (part.type !== 'tool-call' || answered.has(part.toolCallId)) continue
    const value = {
      interrupted: true,
      error: 'This call was cut off; it may have done all, some or none of its work.',
    }
    const { toolCallId, toolName } = part
    const result = {
      type: 'tool-result' as const,
      toolCallId,
      toolName,
      output: { type: 'error-json' as const, value },
    }
    messages.push({ role: 'tool', content: [result] })
  }
}

/** The assistant had the last word and asked for nothing more. */
export function isFinished(messages: readonly ModelMessage[]): boolean {
  const last = messages.at(-1)
  return (
    last?.role === 'assistant' &&
    (typeof last.content === 'string' || !last.content.some((part) => part.type === 'tool-call'))
  )
}

export function lastWords(messages: readonly ModelMessage[]): string {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return ''
  if (typeof last.content === 'string') return last.content
  return last.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** The newest prompt begins with this notice; one that says nothing is always known. */
export function wasTold(messages: readonly ModelMessage[], notice: string): boolean {
  const last = messages.findLast(
    ({ role, content }) => role === 'user' && typeof content === 'string' && !isNews(content),
  )
  return notice === '' || (typeof last?.content === 'string' && last.content.startsWith(notice))
}

const newsMark = 'This is no new task; go on with yours, knowing this. '

/** A message of what has happened while the agent worked. */
export const newsMessage = (news: string): ModelMessage => ({
  role: 'user',
  content: `${newsMark}${news.trimEnd()}`,
})

/** Whether a message of the user's is one of those, and no prompt. */
export const isNews = (text: string): boolean => text.startsWith(newsMark)

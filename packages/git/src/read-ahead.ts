import type { TreeChange } from './port.ts'

export type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>
type Written = Extract<TreeChange, { size: number }>

/** Contents up to here are fetched before their turn, in bytes, and so many at a time: a store's answer takes longer than git's. */
const [maxAhead, window] = [64 << 10, 32]

/** The contents of the changes, in their order; small ones of those that come next are already on their way. */
export async function* readAhead(changes: Iterable<Written>): AsyncGenerator<Content, void> {
  const waiting = changes[Symbol.iterator]()
  const ahead: { readonly change: Written; readonly content: Promise<Uint8Array[]> | undefined }[] = []
  const fill = () => {
    while (ahead.length < window) {
      const { done, value: change } = waiting.next()
      if (done) return
      const content = change.size <= maxAhead ? Array.fromAsync(change.content()) : undefined
      // Whoever waits for it is told; nobody may.
      content?.catch(() => {})
      ahead.push({ change, content })
    }
  }
  fill()
  for (let next = ahead.shift(); next; next = ahead.shift()) {
    fill()
    yield next.content ? await next.content : next.change.content()
  }
}

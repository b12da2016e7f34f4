const ellipsis = '…'

/** How much of an argument a text takes: its bytes as JSON, without the quotes around it. */
const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

/**
 * Cuts a title to so many bytes of JSON, the `…` at its end included: between words, or within one when the first does not fit.
 * Titles go into workflow arguments, whose size is limited.
 */
export function cutTitle(title: string, maxBytes: number): string {
  if (jsonBytes(title) <= maxBytes) return title
  let kept = ''
  for (const { segment } of new Intl.Segmenter().segment(title)) {
    if (jsonBytes(kept + segment + ellipsis) > maxBytes) break
    kept += segment
  }
  const isWordEnd = /^\s/.test(title.slice(kept.length))
  const words = isWordEnd ? kept : kept.replace(/\s+\S*$/, '')
  return `${(words === '' ? kept : words).trimEnd()}${ellipsis}`
}

/** Cuts a text to so many bytes of UTF-8, between characters. */
export function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.byteLength <= maxBytes) return text
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\ufffd+$/, '')
}

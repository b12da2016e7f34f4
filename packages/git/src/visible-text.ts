/** Controls (but tab and line feed), bidirectional marks and invisible characters: they make text look like other text. */
const deceptive = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** The text with every deceptive character as `\u{…}`, so that a person sees it (SEC-11). */
export const visibleText = (text: string): string =>
  text.replace(deceptive, (character) =>
    character === '\n' || character === '\t'
      ? character
      : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )

export const hasDeceptive = (text: string): boolean => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)

/** git's own words without credentials in addresses, fit to be shown. */
export const redact = (text: string): string =>
  visibleText(text.replaceAll('\r', '\n').replace(/:\/\/[^/@\s]*@/g, '://'))
    .trim()
    .slice(0, 4096)

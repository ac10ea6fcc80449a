"""From a reply's Markdown and its tokens to coloured text: pure logic and a writer of documents."""
